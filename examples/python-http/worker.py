"""A complete worker over HTTP with Python's standard library: copy it, and replace the handlers at its end.

    HOLDFAST_API_URL=http://127.0.0.1:8080 HOLDFAST_API_KEY=hf_… python worker.py
    holdfast protocol check -- python worker.py

docs/reference/worker-protocol.md describes the protocol, and the job types of the second command.
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

URL = os.environ["HOLDFAST_API_URL"].rstrip("/")
KEY = os.environ["HOLDFAST_API_KEY"]
QUEUES = os.environ.get("HOLDFAST_QUEUES", "default").split(",")
SLOTS = int(os.environ.get("HOLDFAST_SLOTS", "4"))
LEASE = float(os.environ.get("HOLDFAST_LEASE_SECONDS", "15"))
DRAIN = float(os.environ.get("HOLDFAST_DRAIN_SECONDS", "30"))
draining = threading.Event()


class Refused(Exception):
    """The node refused a call."""

    def __init__(self, status, code, retry_after):
        super().__init__(f"{status} {code}")
        self.status, self.code, self.retry_after = status, code, retry_after


class Stopped(Exception):
    """The handler must stop: its job timed out, was released or is lost."""


def call(path, body=None):
    """Send one request; return the decoded response. Raises `Refused`, or `OSError` without a response."""
    data = None if body is None else json.dumps(body).encode()
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    try:
        with urllib.request.urlopen(urllib.request.Request(URL + path, data, headers), timeout=LEASE + 5) as response:
            return json.loads(response.read() or "null")
    except urllib.error.HTTPError as error:
        with error:
            text = error.read()
        code = json.loads(text)["code"] if text[:1] == b"{" else ""
        raise Refused(error.code, code, float(error.headers.get("Retry-After", 0))) from None
    except ValueError as error:  # the connection broke within the response
        raise OSError(str(error)) from None


class Job:
    """A claimed job, and what its handler may call."""

    def __init__(self, worker, fields):
        self.worker, self.id, self.fence, self.type = worker, fields["id"], fields["fence"], fields["type"]
        self.payload, self.attempts, self.timeout = fields["payload"], fields["attempts"], fields["timeout"]
        self.stopped, self.outcome = threading.Event(), None

    def stop(self, outcome):
        """Ask the handler to stop; `outcome` is what to report then, None for nothing."""
        if not self.stopped.is_set():
            self.outcome = outcome
            self.stopped.set()

    def sleep(self, seconds):
        """Wait; raises `Stopped` if the job was stopped or the lease is over by this worker's clock."""
        if self.stopped.wait(seconds) or time.monotonic() > self.worker.deadline:
            raise Stopped

    def call(self, path, cursor=None, **fields):
        """Send a call about this job, again until there is a response; without fields it is a GET."""
        job = {"worker": self.worker.id, "id": self.id, "fence": self.fence}
        query = "?" + urllib.parse.urlencode(job | ({"cursor": cursor} if cursor else {}))
        while True:
            self.sleep(0)
            try:
                return call(path, job | fields) if fields else call(path + query)
            except Refused as error:
                if error.code == "job_not_held":
                    self.stop(None)
                elif error.code == "lease_lost":
                    self.worker.lose()
                elif error.status not in (429, 503):
                    raise
                self.sleep(error.retry_after)
            except OSError:
                self.sleep(0.2)

    def progress(self, fraction):
        """Save the progress of the job."""
        self.call("/v1/leases/progress", fraction=fraction)

    def steps(self):
        """Return the recorded steps by key."""
        found, cursor = {}, None
        while True:
            page = self.call("/v1/leases/steps", cursor)
            found |= {step["key"]: step for step in page["steps"]}
            cursor = page["next_cursor"]
            if cursor is None:
                return found

    def record(self, key, state, **result):
        """Record a step; a recorded step is never overwritten."""
        self.call("/v1/leases/steps", key=key, state=state, **result)


class Worker:
    """One registration: an id, its lease, and the jobs that it holds."""

    def __init__(self):
        began = time.monotonic()
        about = {"name": "python-http", "pid": os.getpid(), "slots": SLOTS, "types": list(HANDLERS)}
        self.id = call("/v1/leases", {"register": about, "queues": QUEUES, "lease": LEASE, "limit": 0})["worker"]
        self.deadline = began + LEASE * 5 / 6
        self.jobs, self.changed, self.lost = {}, threading.Condition(), threading.Event()

    def run(self):
        """Work until the lease is lost or the worker has drained."""
        threads = [threading.Thread(target=work) for work in (self.claim_jobs, self.renew_lease)]
        for thread in threads:
            thread.start()
        while not (draining.wait(0.1) or self.lost.is_set()):
            pass
        self.drain()
        threads[0].join()  # releases what its last claim returned
        self.lost.set()
        threads[1].join()

    def drain(self):
        """Let running jobs finish for `DRAIN` seconds, then release the others."""
        until = time.monotonic() + DRAIN
        with self.changed:
            while self.jobs and time.monotonic() < until:
                self.changed.wait(0.1)
            for job in self.jobs.values():
                job.stop({"outcome": "released"})
            self.changed.wait_for(lambda: not self.jobs, timeout=LEASE)

    def lose(self):
        """Stop everything and report nothing: the jobs belong to other workers now."""
        self.deadline = 0
        self.lost.set()
        with self.changed:
            for job in self.jobs.values():
                job.stop(None)

    def renew_lease(self):
        """Renew every third of the lease; retry sooner after an error; give up by this worker's own clock."""
        pause = LEASE / 3
        while not self.lost.wait(pause):
            began = time.monotonic()
            if began > self.deadline:
                return self.lose()
            try:
                self.renew(began)
                pause = LEASE / 3
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
        body = {"worker": self.id, "lease": LEASE, "held": held, "draining": draining.is_set()}
        answer = call("/v1/leases/renew", body)
        self.deadline = began + LEASE * 5 / 6
        for job_id in answer["lost"]:
            if job := self.jobs.get(job_id):
                job.stop(None)
        if answer["draining"]:
            draining.set()

    def claim_jobs(self):
        """Claim jobs for free slots, and start them."""
        while not (draining.is_set() or self.lost.is_set()):
            with self.changed:
                self.changed.wait_for(lambda: len(self.jobs) < SLOTS, timeout=0.5)
                free = SLOTS - len(self.jobs)
            try:
                wait = min(5, LEASE / 2)
                body = {"worker": self.id, "queues": QUEUES, "types": list(HANDLERS), "limit": free, "wait": wait}
                self.accept(call("/v1/leases", body)["jobs"] if free else [])
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
            if draining.is_set():
                self.settle(job, {"outcome": "released", "started": False})
            else:
                threading.Thread(target=self.run_job, args=(job,), daemon=True).start()

    def release_unknown(self):
        """Release jobs of a claim whose response was lost."""
        try:
            for held in call("/v1/leases/held", {"worker": self.id})["jobs"]:
                if held["id"] not in self.jobs:
                    job = Job(self, {**held, "payload": None, "attempts": 0, "timeout": None})
                    self.settle(job, {"outcome": "released", "started": False})
        except (Refused, OSError):
            pass  # the next claim or renewal says why

    def run_job(self, job):
        """Run the handler of a job, and report its outcome."""
        timer = threading.Timer(job.timeout or 1e6, job.stop, [{"outcome": "timed_out", "after": job.timeout}])
        timer.daemon = True
        timer.start()
        try:
            outcome = HANDLERS[job.type](job, **job.payload)
        except Stopped:
            outcome = job.outcome
        except Exception as error:  # any error of a handler fails its attempt
            outcome = failed(str(error), kind=type(error).__name__)
        timer.cancel()
        self.settle(job, outcome)

    def settle(self, job, outcome):
        """Report an outcome until there is a response, and forget the job."""
        body = {"worker": self.id, "outcomes": [{"id": job.id, "fence": job.fence, **(outcome or {})}]}
        while outcome and time.monotonic() < self.deadline:
            try:
                call("/v1/leases/settle", body)
                break
            except Refused as error:
                if error.code == "lease_lost":
                    self.lose()
                elif error.status not in (429, 503):
                    print(f"outcome of {job.id} refused: {error}", file=sys.stderr)
                    break
                self.lost.wait(error.retry_after)
            except OSError:
                self.lost.wait(0.2)
        with self.changed:
            self.jobs.pop(job.id, None)
            self.changed.notify_all()


def main():
    """Run until SIGTERM; register again after a lost lease."""
    signal.signal(signal.SIGTERM, lambda *_: draining.set())
    signal.signal(signal.SIGINT, lambda *_: draining.set())
    while not draining.is_set():
        try:
            worker = Worker()
        except (Refused, OSError) as error:
            print(f"cannot register: {error}", file=sys.stderr)
            draining.wait(getattr(error, "retry_after", 0) or 1)
            continue
        worker.run()
        if draining.is_set() and worker.deadline:
            call("/v1/leases/depart", {"worker": worker.id})


# Handlers return the outcome of the attempt.


def succeeded(result):
    """Return the outcome of a success."""
    return {"outcome": "succeeded", "result": result}


def failed(message, *, kind="Error", retryable=True, retry_in=None):
    """Return the outcome of a failure."""
    error = {"kind": kind, "message": message}
    return {"outcome": "failed", "error": error, "retryable": retryable, "retry_in": retry_in}


def echo(job, value):
    """Return the payload."""
    return succeeded(value)


def fail(job, times, message, retryable, retry_in):
    """Fail the first attempts."""
    if job.attempts <= times:
        return failed(message, retryable=retryable, retry_in=retry_in)
    return succeeded({"attempts": job.attempts})


def snooze(job, path, delay):
    """Snooze once."""
    if os.path.exists(path):
        return succeeded({"snoozed": True})
    append(path, "snoozed")
    return {"outcome": "snoozed", "delay": delay}


def tick(job, path, seconds, progress):
    """Write a line every tenth of a second."""
    began = time.monotonic()
    while (passed := time.monotonic() - began) < seconds:
        append(path, f"{job.id} {job.fence}")
        if progress:
            job.progress(passed / seconds)
        job.sleep(0.1)
    return succeeded({"fence": job.fence})


def steps(job, path, stop):
    """Run one step at least once, and another at most once."""
    recorded = job.steps()
    if "first" in recorded:
        first = recorded["first"]["result"]
    else:
        append(path, "first")
        first = {"fence": job.fence}
        job.record("first", "done", result=first)
    if stop == "first" and job.attempts == 1:
        return failed("stopped after the first step", retry_in=0)
    charge = recorded.get("charge", {"state": "new"})
    if charge["state"] == "started":
        return failed("the outcome of the step 'charge' is unknown", retryable=False)
    if charge["state"] == "new":
        job.record("charge", "started")
        append(path, "charge")
        if stop == "charge" and job.attempts == 1:
            return failed("stopped within the step 'charge'", retry_in=0)
        job.record("charge", "done", result="charged")
    return succeeded({"first": first, "charge": "charged"})


def large(job, bytes):
    """Return a result of this size."""
    return succeeded("x" * bytes)


def append(path, line):
    """Append a line to a file in one write."""
    with open(path, "a") as file:
        file.write(line + "\n")


HANDLERS = {
    "check.echo": echo,
    "check.fail": fail,
    "check.snooze": snooze,
    "check.tick": tick,
    "check.steps": steps,
    "check.large": large,
}

if __name__ == "__main__":
    main()
