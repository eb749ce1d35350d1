package holdfast;

import static holdfast.HoldfastWorker.clock;
import static holdfast.Json.map;

import holdfast.HoldfastWorker.PermanentError;
import holdfast.HoldfastWorker.Refused;
import holdfast.HoldfastWorker.Retry;
import holdfast.HoldfastWorker.Snooze;
import holdfast.HoldfastWorker.Stopped;
import java.io.IOException;
import java.net.URLEncoder;
import java.nio.charset.StandardCharsets;
import java.util.HashMap;
import java.util.Map;
import java.util.Timer;
import java.util.TimerTask;
import java.util.concurrent.Callable;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;

/** A claimed job, and the calls that its handler may make. They throw an Error if the handler must stop. */
public final class Job {
    private static final Timer TIMEOUTS = new Timer(true);

    public final String id;
    public final long fence;
    private final Registration registration;
    private final Map<String, Object> fields;
    private Map<String, Map<String, Object>> recorded;  // null until the first step reads it
    private final CountDownLatch stopped = new CountDownLatch(1);
    private Map<String, Object> outcome;  // reported after a stop; null for nothing

    Job(Registration registration, Map<String, Object> fields) {
        this.registration = registration;
        this.fields = fields;
        id = (String) fields.get("id");
        fence = ((Number) fields.get("fence")).longValue();
    }

    /** Return the number of this attempt, from 1. */
    public long attempts() {
        return ((Number) fields.get("attempts")).longValue();
    }

    /** Return a field of the payload. */
    public Object get(String field) {
        return ((Map<?, ?>) fields.get("payload")).get(field);
    }

    /** Return a field of the payload that is a number. */
    public double number(String field) {
        return ((Number) get(field)).doubleValue();
    }

    /** Wait; with 0, only check whether the handler must stop. */
    public void sleep(long milliseconds) throws InterruptedException {
        if (stopped.await(milliseconds, TimeUnit.MILLISECONDS) || clock() > registration.deadline) throw new Stopped();
    }

    /** Save the progress of the job, from 0 to 1. */
    public void progress(double fraction) throws InterruptedException {
        call("/progress", map("fraction", fraction));
    }

    /** Return the recorded result of a step, or run it and record its result; it runs again until it is recorded. */
    public Object step(String key, Callable<?> function) throws Exception {
        return step(key, function, false);
    }

    /** Do the same with a step that runs at most once: the job is dead if the outcome of the step is unknown. */
    public Object stepAtMostOnce(String key, Callable<?> function) throws Exception {
        return step(key, function, true);
    }

    /** Return a key for calls of other services, the same in each attempt of this job. */
    public String idempotencyKey(String name) {
        return id + ":" + name;
    }

    private Object step(String key, Callable<?> function, boolean atMostOnce) throws Exception {
        if (recorded == null) recorded = readSteps();
        Map<String, Object> step = recorded.get(key);
        if (step != null && step.get("state").equals("done")) return step.get("result");
        if (step != null) throw new PermanentError("the outcome of the step '" + key + "' is unknown");
        if (atMostOnce) call("/steps", map("key", key, "state", "started"));
        Object result = function.call();
        call("/steps", map("key", key, "state", "done", "result", result));
        recorded.put(key, map("state", "done", "result", result));
        return result;
    }

    private Map<String, Map<String, Object>> readSteps() throws InterruptedException {
        Map<String, Map<String, Object>> found = new HashMap<>();
        String first = "/steps?worker=" + registration.id + "&id=" + id + "&fence=" + fence;
        for (String path = first; path != null;) {
            Map<String, Object> page = call(path, null);
            for (Map<String, Object> step : Json.objects(page.get("steps"))) found.put((String) step.get("key"), step);
            String cursor = (String) page.get("next_cursor");
            path = cursor == null ? null : first + "&cursor=" + URLEncoder.encode(cursor, StandardCharsets.UTF_8);
        }
        return found;
    }

    /** Send a call about this job, again until there is a response; without fields it is a GET. */
    private Map<String, Object> call(String path, Map<String, Object> fields) throws InterruptedException {
        Map<String, Object> body = fields == null ? null : map("worker", registration.id, "id", id, "fence", fence);
        if (fields != null) body.putAll(fields);
        while (true) {
            sleep(0);
            try {
                return registration.worker.send(path, body);
            } catch (Refused refused) {
                if (refused.code.equals("job_not_held")) stop(null);
                else if (refused.code.equals("lease_lost")) registration.lose();
                else if (refused.isInvalid()) throw refused;
                sleep(refused.retryAfterMs);
            } catch (IOException error) {
                sleep(200);
            }
        }
    }

    /** Ask the handler to stop; this outcome is reported then, nothing if it is null. */
    synchronized void stop(Map<String, Object> report) {
        if (stopped.getCount() == 0) return;
        outcome = report;
        stopped.countDown();
    }

    /** Run the handler; return the outcome of the attempt, null for none. */
    Map<String, Object> run() {
        TimerTask timeout = stopAfterTimeout();
        try {
            Object result = registration.worker.handlers.get((String) fields.get("type")).run(this);
            return map("outcome", "succeeded", "result", result);
        } catch (Stopped stop) {
            return outcome;
        } catch (Snooze snooze) {
            return map("outcome", "snoozed", "delay", snooze.delay);
        } catch (Throwable error) {  // any other error of a handler fails its attempt
            return failed(error);
        } finally {
            timeout.cancel();
        }
    }

    private TimerTask stopAfterTimeout() {
        Number seconds = (Number) fields.get("timeout");
        TimerTask task = new TimerTask() {
            @Override
            public void run() {
                stop(map("outcome", "timed_out", "after", seconds));
            }
        };
        if (seconds != null) TIMEOUTS.schedule(task, (long) (seconds.doubleValue() * 1000));
        return task;
    }

    /** Return the outcome of an attempt that ended with an error. */
    static Map<String, Object> failed(Throwable error) {
        Map<String, Object> about = map("kind", error.getClass().getSimpleName(), "message", "" + error.getMessage());
        return map("outcome", "failed", "error", about, "retryable", !(error instanceof PermanentError),
            "retry_in", error instanceof Retry retry ? retry.delay : null);
    }
}
