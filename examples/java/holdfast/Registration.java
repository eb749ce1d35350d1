package holdfast;

import static holdfast.HoldfastWorker.clock;
import static holdfast.Json.map;

import holdfast.HoldfastWorker.Refused;
import java.io.IOException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

/** Registration of a worker: an id, its lease, and the jobs that it holds. */
final class Registration {
    final HoldfastWorker worker;
    final String id;
    volatile double deadline;  // when handlers must stop, by this worker's own clock
    private final Map<String, Job> jobs = new ConcurrentHashMap<>();
    private volatile boolean lost = false;

    Registration(HoldfastWorker worker) throws IOException, InterruptedException {
        this.worker = worker;
        deadline = clock() + worker.lease * 5 / 6;
        Map<String, Object> about = map("name", "java", "pid", ProcessHandle.current().pid(),
            "slots", worker.slots, "types", worker.handlers.keySet());
        Map<String, Object> body = map("register", about, "queues", worker.queues, "lease", worker.lease, "limit", 0);
        id = (String) worker.send("", body).get("worker");
    }

    /** Work until the lease is lost, or the worker has drained and departed. */
    void run() throws InterruptedException {
        Thread renewals = start(this::renewLease);
        while (worker.drainUntil == 0 && !lost) {
            int free = worker.slots - jobs.size();
            if (free > 0) claim(free);
            else Thread.sleep(20);
        }
        while (!jobs.isEmpty() && !lost && clock() < worker.drainUntil) Thread.sleep(20);
        for (Job job : jobs.values()) job.stop(map("outcome", "released"));
        while (!jobs.isEmpty() && !lost) Thread.sleep(20);
        deliver("/depart", map("worker", id));
        lost = true;
        renewals.interrupt();
    }

    /** Stop everything and report nothing: the jobs belong to other workers now. */
    void lose() {
        lost = true;
        deadline = 0;
        for (Job job : jobs.values()) job.stop(null);
    }

    /** Renew every third of the lease; retry sooner after an error; give up by this worker's own clock. */
    private void renewLease() {
        long third = (long) (worker.lease * 1000 / 3);
        long pause = third;
        try {
            while (!lost) {
                Thread.sleep(pause);
                try {
                    if (clock() > deadline) lose();
                    else renew();
                    pause = third;
                } catch (Refused refused) {
                    if (refused.code.equals("lease_lost")) lose();
                    pause = refused.retryAfterMs;
                } catch (IOException error) {
                    pause = 200;
                }
            }
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        }
    }

    /** Renew the lease; stop the jobs that were lost. */
    private void renew() throws IOException, InterruptedException {
        double began = clock();
        List<Object> held = new ArrayList<>();
        for (Job job : jobs.values()) held.add(map("id", job.id, "fence", job.fence));
        boolean draining = worker.drainUntil > 0;
        Map<String, Object> response = worker.send("/renew",
            map("worker", id, "lease", worker.lease, "held", held, "draining", draining));
        deadline = began + worker.lease * 5 / 6;
        for (Object jobId : (List<?>) response.get("lost")) {
            Job job = jobs.get((String) jobId);
            if (job != null) job.stop(null);
        }
        if ((Boolean) response.get("draining")) worker.drain();
    }

    /** Claim jobs and start them; while draining, release them instead. */
    private void claim(int limit) throws InterruptedException {
        try {
            Map<String, Object> response = worker.send("", map("worker", id, "queues", worker.queues,
                "types", worker.handlers.keySet(), "limit", limit, "wait", Math.min(5, worker.lease / 2)));
            for (Map<String, Object> fields : Json.objects(response.get("jobs"))) {
                Job job = new Job(this, fields);
                jobs.put(job.id, job);
                if (worker.drainUntil == 0) start(() -> settle(job, job.run()));
                else settle(job, map("outcome", "released", "started", false));
            }
        } catch (Refused refused) {
            if (refused.code.equals("lease_lost")) lose();
            else Thread.sleep(refused.retryAfterMs);
        } catch (IOException error) {
            Thread.sleep(500);
            releaseUnknown();
        }
    }

    /** Release the jobs of a claim whose response was lost. */
    private void releaseUnknown() throws InterruptedException {
        try {
            for (Map<String, Object> held : Json.objects(worker.send("/held", map("worker", id)).get("jobs"))) {
                if (jobs.containsKey((String) held.get("id"))) continue;
                settle(new Job(this, held), map("outcome", "released", "started", false));
            }
        } catch (IOException | Refused error) {
            return;  // the next claim or renewal says why
        }
    }

    /** Report an outcome, if there is one, and forget the job. */
    private void settle(Job job, Map<String, Object> outcome) {
        try {
            if (outcome != null) report(job, outcome);
        } catch (InterruptedException ended) {
            Thread.currentThread().interrupt();
        } finally {
            jobs.remove(job.id, job);
        }
    }

    /** Report an outcome; if the node finds it invalid, fail the job with the reason. */
    private void report(Job job, Map<String, Object> outcome) throws InterruptedException {
        outcome.putAll(map("id", job.id, "fence", job.fence));
        try {
            deliver("/settle", map("worker", id, "outcomes", List.of(outcome)));
        } catch (Refused refused) {
            Map<String, Object> invalid = Job.failed(
                new HoldfastWorker.PermanentError("the node refused the outcome: " + refused.getMessage()));
            invalid.putAll(map("id", job.id, "fence", job.fence));
            deliver("/settle", map("worker", id, "outcomes", List.of(invalid)));
        }
    }

    /** Repeat a call until there is a response or the lease is over. Throws `Refused` if it is invalid. */
    private void deliver(String path, Map<String, Object> body) throws InterruptedException {
        while (clock() < deadline) {
            try {
                worker.send(path, body);
                return;
            } catch (Refused refused) {
                if (refused.code.equals("lease_lost")) lose();
                else if (refused.isInvalid()) throw refused;
                else Thread.sleep(refused.retryAfterMs);
            } catch (IOException error) {
                Thread.sleep(200);
            }
        }
    }

    private static Thread start(Runnable work) {
        Thread thread = new Thread(work);
        thread.setDaemon(true);
        thread.start();
        return thread;
    }
}
