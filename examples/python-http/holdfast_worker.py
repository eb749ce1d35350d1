"""Worker loop over HTTP with Python's standard library: copy this file beside your handlers.

It follows docs/reference/worker-protocol.md. conformance.py runs it under `holdfast protocol check`. Each job runs in a
thread. Python cannot end a thread, so a handler stops at its next call of a method of its job.
"""

import json
import os
import signal
import sys
import threading
import time
import urllib.error
import urllib.parse
import urllib.request

INVALID = (400, 413, 415, 422)
"""Status codes of a request that must not be repeated unchanged."""


class PermanentError(Exception):
    """The job cannot succeed: do not retry it."""


class Retry(Exception):
    """The attempt failed; run the job again after `delay` seconds, or by its rule."""

    def __init__(self, message, delay=None):
        super().__init__(message)
        self.delay = delay


class Snooze(Exception):
    """Run the job again after `delay` seconds; the attempt does not count."""

    def __init__(self, delay):
        super().__init__(delay)
        self.delay = delay


class Stopped(BaseException):
    """The handler must stop. No `Exception`, so that handlers do not catch it by accident."""


class Refused(Exception):
    """The node refused a call."""

    def __init__(self, status, code, retry_after):
        super().__init__(f"{status} {code}")
        self.status, self.code, self.retry_after = status, code, retry_after


class Worker:
    """Settings and handlers of a worker. Environment variables take precedence over the arguments."""

    def __init__(self, queues="default", slots=4, lease=15, drain=30):
        self.url = os.environ.get("HOLDFAST_API_URL", "http://127.0.0.1:8080").rstrip("/")
        self.key = os.environ.get("HOLDFAST_API_KEY", "")
        self.queues = os.environ.get("HOLDFAST_QUEUES", queues).split(",")
        self.slots = int(os.environ.get("HOLDFAST_SLOTS", slots))
        self.lease = float(os.environ.get("HOLDFAST_LEASE_SECONDS", lease))
        self.drain_time = float(os.environ.get("HOLDFAST_DRAIN_SECONDS", drain))
        self.handlers, self.draining = {}, threading.Event()

    def handler(self, job_type):
        """Return a decorator that registers the handler of a job type."""

        def register(function):
            self.handlers[job_type] = function
            return function

        return register

    def run(self):
        """Work until SIGTERM; register again after a lost lease."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self.request_drain)
        while not self.draining.is_set():
            try:
                registration = Registration(self)
            except (Refused, OSError) as error:
                print(f"cannot register at {self.url}: {error}", file=sys.stderr)
                self.draining.wait(getattr(error, "retry_after", 0) or 1)
            else:
                registration.run()

    def request_drain(self, number, _frame):
        """Drain; a second signal ends the process at once."""
        self.draining.set()
        signal.signal(number, signal.SIG_DFL)

    def call(self, path, body=None):
        """Send one request; return the decoded response. Raises `Refused`, or `OSError` without a response."""
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self.key}", "Content-Type": "application/json"}
        request = urllib.request.Request(self.url + path, data, headers)
        try:
            with urllib.request.urlopen(request, timeout=self.lease + 5) as response:
                return json.loads(response.read() or "null")
        except urllib.error.HTTPError as error:
            with error:
                text = error.read()
            code = json.loads(text)["code"] if text[:1] == b"{" else ""
            raise Refused(error.code, code, float(error.headers.get("Retry-After", 0))) from None
        except ValueError as error:  # the connection broke within the response
            raise OSError(str(error)) from None


class Registration:
    """Registration of a worker: an id, its lease, and the jobs that it holds."""

    def __init__(self, worker):
        began = time.monotonic()
        about = {"name": "python-http", "pid": os.getpid(), "slots": worker.slots, "types": list(worker.handlers)}
        body = {"register": about, "queues": worker.queues, "lease": worker.lease, "limit": 0}
        self.worker, self.id = worker, worker.call("/v1/leases", body)["worker"]
        self.deadline = began + worker.lease * 5 / 6
        self.jobs, self.changed, self.lost = {}, threading.Condition(), threading.Event()

    def run(self):
        """Work until the lease is lost, or the worker has drained and departed."""
        claims, renewals = (threading.Thread(target=each) for each in (self.claim_jobs, self.renew_lease))
        claims.start()
        renewals.start()
        while not (self.worker.draining.wait(0.1) or self.lost.is_set()):
            pass
        self.drain()
        claims.join()  # releases the jobs of its last response
        self.deliver("/v1/leases/depart", {"worker": self.id})
        self.lost.set()
        renewals.join()

    def drain(self):
        """Let running jobs finish for the drain time, then release the others."""
        until = time.monotonic() + self.worker.drain_time
        with self.changed:
            while self.jobs and time.monotonic() < until:
                self.changed.wait(0.1)
            for job in self.jobs.values():
                job.stop({"outcome": "released"})
            self.changed.wait_for(lambda: not self.jobs, timeout=self.worker.lease)

    def lose(self):
        """Stop everything and report nothing: the jobs belong to other workers now."""
        self.deadline = 0
        self.lost.set()
        with self.changed:
            for job in self.jobs.values():
                job.stop(None)

    def renew_lease(self):
        """Renew every third of the lease; retry sooner after an error; give up by this worker's own clock."""
        pause = self.worker.lease / 3
        while not self.lost.wait(pause):
            began = time.monotonic()
            if began > self.deadline:
                return self.lose()
            try:
                self.renew(began)
                pause = self.worker.lease / 3
            except Refused as error:
                if error.code == "lease_lost":
                    return self.lose()
                pause = error.retry_after or 0.2
            except OSError:
                pause = 0.2

    def renew(self, began):
        """Renew the lease; stop the jobs that were lost."""
        with self.changed:
            held = [{"id": job.id, "fence": job.fence} for job in self.jobs.values()]
        draining = self.worker.draining.is_set()
        body = {"worker": self.id, "lease": self.worker.lease, "held": held, "draining": draining}
        response = self.worker.call("/v1/leases/renew", body)
        self.deadline = began + self.worker.lease * 5 / 6
        for job_id in response["lost"]:
            if job := self.jobs.get(job_id):
                job.stop(None)
        if response["draining"]:
            self.worker.draining.set()

    def claim_jobs(self):
        """Claim jobs for free slots, and start them."""
        worker = self.worker
        body = {"worker": self.id, "queues": worker.queues, "types": list(worker.handlers)}
        while not (worker.draining.is_set() or self.lost.is_set()):
            with self.changed:
                self.changed.wait_for(lambda: len(self.jobs) < worker.slots, timeout=0.5)
                free = worker.slots - len(self.jobs)
            if free == 0:
                continue
            try:
                claim = body | {"limit": free, "wait": min(5, worker.lease / 2)}
                self.accept(worker.call("/v1/leases", claim)["jobs"])
            except Refused as error:
                if error.code == "lease_lost":
                    return self.lose()
                self.lost.wait(error.retry_after or 1)
            except OSError:
                self.lost.wait(0.5)
                self.release_unknown()

    def accept(self, claimed):
        """Start claimed jobs; while draining, release them instead."""
        for fields in claimed:
            job = Job(self, fields)
            with self.changed:
                self.jobs[job.id] = job
            if self.worker.draining.is_set():
                self.settle(job, {"outcome": "released", "started": False})
            else:
                threading.Thread(target=self.run_job, args=(job,), daemon=True).start()

    def release_unknown(self):
        """Release jobs of a claim whose response was lost."""
        try:
            for held in self.worker.call("/v1/leases/held", {"worker": self.id})["jobs"]:
                if held["id"] not in self.jobs:
                    job = Job(self, {**held, "payload": None, "attempts": 0, "timeout": None})
                    self.settle(job, {"outcome": "released", "started": False})
        except (Refused, OSError):
            pass  # the next claim or renewal says why

    def run_job(self, job):
        """Run the handler of a job, and report its outcome."""
        timer = threading.Timer(job.timeout or 0, job.stop, [{"outcome": "timed_out", "after": job.timeout}])
        timer.daemon = True
        if job.timeout:
            timer.start()
        try:
            outcome = {"outcome": "succeeded", "result": self.worker.handlers[job.type](job, **job.payload)}
            json.dumps(outcome)  # a result that is not JSON fails the attempt
        except Stopped:
            outcome = job.outcome
        except Snooze as snooze:
            outcome = {"outcome": "snoozed", "delay": snooze.delay}
        except Exception as error:  # any other error of a handler fails its attempt
            outcome = failed(error)
        timer.cancel()
        self.settle(job, outcome)

    def settle(self, job, outcome):
        """Report an outcome, if there is one, and forget the job."""
        try:
            if outcome is not None:
                self.report(job, outcome)
        finally:
            with self.changed:
                self.jobs.pop(job.id, None)
                self.changed.notify_all()

    def report(self, job, outcome):
        """Report an outcome; if the node finds it invalid, fail the job with the reason."""
        held = {"id": job.id, "fence": job.fence}
        try:
            self.deliver("/v1/leases/settle", {"worker": self.id, "outcomes": [held | outcome]})
        except Refused as error:
            invalid = failed(PermanentError(f"the node refused the outcome: {error}"))
            self.deliver("/v1/leases/settle", {"worker": self.id, "outcomes": [held | invalid]})

    def deliver(self, path, body):
        """Repeat a call until there is a response or the lease is over. Raises `Refused` if it is invalid."""
        while time.monotonic() < self.deadline:
            try:
                return self.worker.call(path, body)
            except Refused as error:
                if error.code == "lease_lost":
                    self.lose()
                elif error.status in INVALID:
                    raise
                self.lost.wait(error.retry_after or 1)
            except OSError:
                self.lost.wait(0.2)


class Job:
    """A claimed job, and the calls that its handler may make. They raise `Stopped` if the handler must stop."""

    def __init__(self, registration, fields):
        self.registration, self.id, self.fence = registration, fields["id"], fields["fence"]
        self.type, self.payload, self.timeout = fields["type"], fields["payload"], fields["timeout"]
        self.attempts, self.recorded = fields["attempts"], None
        self.stopped, self.outcome = threading.Event(), None

    def sleep(self, seconds):
        """Wait; with 0, only check whether the handler must stop."""
        if self.stopped.wait(seconds) or time.monotonic() > self.registration.deadline:
            raise Stopped

    def progress(self, fraction, note=None):
        """Save the progress of the job, from 0 to 1."""
        self.call("/v1/leases/progress", fraction=fraction, **({} if note is None else {"note": note}))

    def step(self, key, function, *, at_most_once=False):
        """Return the recorded result of a step, or run it and record its result.

        A step runs again if its attempt ended before the record. With `at_most_once` the job is dead instead.
        """
        if self.recorded is None:
            self.recorded = self.read_steps()
        if key in self.recorded:
            if self.recorded[key]["state"] == "done":
                return self.recorded[key]["result"]
            raise PermanentError(f"an earlier attempt started the step {key!r}, and its outcome is unknown")
        if at_most_once:
            self.call("/v1/leases/steps", key=key, state="started")
        result = function()
        self.call("/v1/leases/steps", key=key, state="done", result=result)
        self.recorded[key] = {"state": "done", "result": result}
        return result

    def idempotency_key(self, name):
        """Return a key for calls of other services, the same in each attempt of this job."""
        return f"{self.id}:{name}"

    def stop(self, outcome):
        """Ask the handler to stop; `outcome` is reported then, nothing if it is None."""
        if not self.stopped.is_set():
            self.outcome = outcome
            self.stopped.set()

    def read_steps(self):
        """Return the steps that earlier attempts recorded, by key."""
        found, cursor = {}, None
        while True:
            page = self.call("/v1/leases/steps", cursor)
            found |= {step["key"]: step for step in page["steps"]}
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def call(self, path, cursor=None, **fields):
        """Send a call about this job, again until there is a response; without fields it is a GET."""
        job = {"worker": self.registration.id, "id": self.id, "fence": self.fence}
        query = "?" + urllib.parse.urlencode(job | ({"cursor": cursor} if cursor else {}))
        send = self.registration.worker.call
        while True:
            self.sleep(0)
            try:
                return send(path, job | fields) if fields else send(path + query)
            except Refused as error:
                if error.code == "job_not_held":
                    self.stop(None)
                elif error.code == "lease_lost":
                    self.registration.lose()
                elif error.status in INVALID:
                    raise
                self.sleep(error.retry_after or 1)
            except OSError:
                self.sleep(0.2)


def failed(error):
    """Return the outcome of an attempt that ended with an error."""
    outcome = {"outcome": "failed", "error": {"kind": type(error).__name__, "message": str(error)}}
    return outcome | {"retryable": not isinstance(error, PermanentError), "retry_in": getattr(error, "delay", None)}
