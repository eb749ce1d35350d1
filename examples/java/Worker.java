import java.io.IOException;
import java.net.*;
import java.net.http.*;
import java.nio.charset.StandardCharsets;
import java.nio.file.*;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;

/** A complete worker over HTTP with the JDK (17 or newer) alone: `java Worker.java`. Replace the handlers with yours. */
public class Worker {
    static final String URL = System.getenv("HOLDFAST_API_URL"), KEY = System.getenv("HOLDFAST_API_KEY");
    static final List<String> QUEUES = List.of(setting("HOLDFAST_QUEUES", "default").split(","));
    static final int SLOTS = Integer.parseInt(setting("HOLDFAST_SLOTS", "4"));
    static final double LEASE = Double.parseDouble(setting("HOLDFAST_LEASE_SECONDS", "15"));
    static final double DRAIN = Double.parseDouble(setting("HOLDFAST_DRAIN_SECONDS", "30"));
    static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();
    static final ExecutorService THREADS = Executors.newCachedThreadPool(Worker::daemon);
    static final ScheduledExecutorService TIMER = Executors.newScheduledThreadPool(1, Worker::daemon);
    static volatile long drainUntil = 0;  // 0 until the worker is asked to drain; then the time of `clock`

    interface Handler { Map<String, Object> run(Job job, Map<String, Object> payload) throws Exception; }

    static final Map<String, Handler> HANDLERS = Map.of(  // each returns the outcome of the attempt
        "check.echo", (job, in) -> succeeded(in.get("value")),
        "check.fail", (job, in) -> job.attempts() > num(in.get("times")) ? succeeded(map("attempts", job.attempts()))
            : failed((String) in.get("message"), (Boolean) in.get("retryable"), in.get("retry_in")),
        "check.snooze", (job, in) -> Files.exists(Path.of((String) in.get("path"))) ? succeeded(map("snoozed", true))
            : append(in, "snoozed", map("outcome", "snoozed", "delay", in.get("delay"))),
        "check.tick", Worker::tick, "check.steps", Worker::steps,
        "check.large", (job, in) -> succeeded("x".repeat((int) num(in.get("bytes")))));

    static Map<String, Object> tick(Job job, Map<String, Object> in) throws Exception {
        double began = clock(), seconds = num(in.get("seconds")), passed;
        while ((passed = clock() - began) < seconds * 1000) {
            append(in, job.id + " " + job.fence, null);
            if ((Boolean) in.get("progress")) job.call("/progress", map("fraction", passed / seconds / 1000));
            job.sleep(100);
        }
        return succeeded(map("fence", job.fence));
    }

    static Map<String, Object> steps(Job job, Map<String, Object> in) throws Exception {
        Map<String, Map<String, Object>> recorded = job.steps();
        Object first = recorded.containsKey("first") ? recorded.get("first").get("result") : map("fence", job.fence);
        if (!recorded.containsKey("first")) {
            append(in, "first", null);
            job.call("/steps", map("key", "first", "state", "done", "result", first));
        }
        if (in.get("stop").equals("first") && job.attempts() == 1) return failed("stopped after 'first'", true, 0);
        String charge = (String) recorded.getOrDefault("charge", map("state", "new")).get("state");
        if (charge.equals("started")) return failed("the outcome of 'charge' is unknown", false, null);
        if (charge.equals("new")) {  // at most once: mark it before it runs
            job.call("/steps", map("key", "charge", "state", "started"));
            append(in, "charge", null);
            if (in.get("stop").equals("charge") && job.attempts() == 1) return failed("stopped in 'charge'", true, 0);
            job.call("/steps", map("key", "charge", "state", "done", "result", "charged"));
        }
        return succeeded(map("first", first, "charge", "charged"));
    }

    /** A claimed job, and what its handler may call. */
    class Job {
        final Map<String, Object> fields; final String id; final long fence;
        final CountDownLatch stopped = new CountDownLatch(1);
        volatile Map<String, Object> outcome;  // what to report once the handler has stopped; null for nothing

        Job(Map<String, Object> fields) { this.fields = fields; id = (String) fields.get("id"); fence = (long) num(fields.get("fence")); }
        long attempts() { return (long) num(fields.get("attempts")); }
        synchronized void stop(Map<String, Object> report) { if (stopped.getCount() > 0) { outcome = report; stopped.countDown(); } }

        /** Wait; throws `Stopped` if the job was stopped, or the lease is over by this worker's clock. */
        void sleep(double ms) throws InterruptedException {
            if (stopped.await((long) ms, TimeUnit.MILLISECONDS) || clock() > deadline) throw new Stopped();
        }
        Map<String, Object> call(String path, Map<String, Object> more) throws InterruptedException {
            Map<String, Object> body = map("worker", worker, "id", id, "fence", fence);
            if (more != null) body.putAll(more);
            while (true) {
                sleep(0);
                try {
                    return send(path, more == null ? null : body);
                } catch (Refused refused) {
                    if (refused.code.equals("job_not_held")) stop(null);  // only this job is lost
                    else if (refused.code.equals("lease_lost")) lose();
                    else if (refused.status != 429 && refused.status != 503) throw refused;
                    sleep(refused.retryAfterMs);
                } catch (IOException error) { sleep(200); }
            }
        }
        Map<String, Map<String, Object>> steps() throws InterruptedException {
            Map<String, Map<String, Object>> found = new HashMap<>();
            String first = "/steps?worker=" + worker + "&id=" + id + "&fence=" + fence, next = first;
            while (next != null) {
                Map<String, Object> page = call(next, null);
                for (var step : maps(page.get("steps"))) found.put((String) step.get("key"), step);
                String cursor = (String) page.get("next_cursor");
                next = cursor == null ? null : first + "&cursor=" + URLEncoder.encode(cursor, StandardCharsets.UTF_8);
            }
            return found;
        }
        void run() {
            Object limit = fields.get("timeout");
            Runnable end = () -> stop(map("outcome", "timed_out", "after", limit));
            var timer = limit == null ? null : TIMER.schedule(end, (long) (num(limit) * 1000), TimeUnit.MILLISECONDS);
            Map<String, Object> report;
            try { report = HANDLERS.get((String) fields.get("type")).run(this, cast(fields.get("payload"))); }
            catch (Stopped stop) { report = outcome; }
            catch (Exception error) { report = failed(error.toString(), true, null); }
            if (timer != null) timer.cancel(false);
            settle(this, report);
        }
    }

    // One registration: an id, its lease, and the jobs that it holds.

    final String worker;
    final Map<String, Job> jobs = new ConcurrentHashMap<>();
    volatile double deadline;
    volatile boolean lost = false;

    Worker() throws IOException, InterruptedException {
        deadline = clock() + LEASE * 5000 / 6;
        var about = map("name", "java", "slots", SLOTS, "pid", ProcessHandle.current().pid(), "types", HANDLERS.keySet());
        worker = (String) send("", map("register", about, "queues", QUEUES, "lease", LEASE, "limit", 0)).get("worker");
    }

    void run() throws InterruptedException {
        Future<?> renewals = THREADS.submit(this::renewLease);
        while (drainUntil == 0 && !lost) {
            int free = SLOTS - jobs.size();
            if (free == 0) { Thread.sleep(20); continue; }
            try {
                var claim = map("worker", worker, "queues", QUEUES, "types", HANDLERS.keySet(), "limit", free, "wait", Math.min(5, LEASE / 2));
                for (var fields : maps(send("", claim).get("jobs"))) {
                    Job job = new Job(fields);
                    jobs.put(job.id, job);
                    if (drainUntil == 0) THREADS.submit(job::run); else settle(job, map("outcome", "released", "started", false));
                }
            } catch (Refused refused) {
                if (refused.code.equals("lease_lost")) lose(); else Thread.sleep(refused.retryAfterMs);
            } catch (IOException error) { Thread.sleep(500); releaseUnknown(); }
        }
        while (!jobs.isEmpty() && !lost && clock() < drainUntil) Thread.sleep(20);
        for (Job job : jobs.values()) job.stop(map("outcome", "released"));
        while (!jobs.isEmpty() && !lost) Thread.sleep(20);
        if (!lost) try { send("/depart", map("worker", worker)); } catch (IOException | Refused error) { System.err.println(error); }
        lost = true;
        renewals.cancel(true);
    }

    void lose() { lost = true; deadline = 0; for (Job job : jobs.values()) job.stop(null); }

    void renewLease() {
        double pause = LEASE * 1000 / 3;
        while (!lost) {
            try {
                Thread.sleep((long) pause);
                double began = clock();
                if (began > deadline) { lose(); return; }
                List<Object> held = new ArrayList<>();
                for (Job job : jobs.values()) held.add(map("id", job.id, "fence", job.fence));
                var answer = send("/renew", map("worker", worker, "lease", LEASE, "held", held, "draining", drainUntil > 0));
                deadline = began + LEASE * 5000 / 6;
                for (Object id : (List<?>) answer.get("lost")) { Job job = jobs.get((String) id); if (job != null) job.stop(null); }
                if ((Boolean) answer.get("draining")) drain();
                pause = LEASE * 1000 / 3;
            } catch (Refused refused) {
                if (refused.code.equals("lease_lost")) lose();
                pause = Math.max(200, refused.retryAfterMs);
            } catch (IOException error) { pause = 200; } catch (InterruptedException ended) { return; }
        }
    }

    void settle(Job job, Map<String, Object> outcome) {
        try {
            if (outcome != null) outcome.putAll(map("id", job.id, "fence", job.fence));
            while (outcome != null && clock() < deadline) {
                try { send("/settle", map("worker", worker, "outcomes", List.of(outcome))); break; }
                catch (Refused refused) {
                    if (refused.code.equals("lease_lost")) lose();
                    else if (refused.status != 429 && refused.status != 503) { System.err.println(job.id + ": " + refused); break; }
                    Thread.sleep(refused.retryAfterMs);
                } catch (IOException error) { Thread.sleep(200); }
            }
        } catch (InterruptedException ended) { Thread.currentThread().interrupt(); }
        jobs.remove(job.id, job);
    }

    /** Release the jobs of a claim whose response was lost. */
    void releaseUnknown() {
        try {
            for (var held : maps(send("/held", map("worker", worker)).get("jobs")))
                if (!jobs.containsKey((String) held.get("id"))) settle(new Job(held), map("outcome", "released", "started", false));
        } catch (IOException | InterruptedException | Refused error) { /* the next claim or renewal says why */ }
    }

    public static void main(String[] arguments) throws InterruptedException {
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {  // SIGTERM and Ctrl-C
            drain();
            try { main.join(); } catch (InterruptedException ended) { /* exit anyway */ }
            Runtime.getRuntime().halt(0);
        }));
        while (drainUntil == 0) {
            try { new Worker().run(); }
            catch (IOException | Refused error) { System.err.println("cannot register: " + error); Thread.sleep(1000); }
        }
    }

    // Helpers

    static class Stopped extends RuntimeException { }
    static class Refused extends RuntimeException {
        final int status; final String code; final long retryAfterMs;
        Refused(int status, String code, long retryAfterMs) { super(status + " " + code); this.status = status; this.code = code; this.retryAfterMs = retryAfterMs; }
    }
    static void drain() { if (drainUntil == 0) drainUntil = (long) (clock() + DRAIN * 1000); }
    static double clock() { return System.nanoTime() / 1e6 + 1e12; }  // milliseconds, monotonic and positive
    static String setting(String name, String other) { return System.getenv().getOrDefault(name, other); }
    static Thread daemon(Runnable work) { Thread thread = new Thread(work); thread.setDaemon(true); return thread; }
    static double num(Object value) { return ((Number) value).doubleValue(); }
    @SuppressWarnings("unchecked") static <T> T cast(Object value) { return (T) value; }
    static List<Map<String, Object>> maps(Object list) { return cast(list); }
    static Map<String, Object> succeeded(Object result) { return map("outcome", "succeeded", "result", result); }
    static Map<String, Object> failed(String message, boolean retryable, Object retryIn) {
        return map("outcome", "failed", "error", map("kind", "Error", "message", message), "retryable", retryable, "retry_in", retryIn);
    }
    static Map<String, Object> map(Object... pairs) {
        Map<String, Object> made = new LinkedHashMap<>();
        for (int i = 0; i < pairs.length; i += 2) made.put((String) pairs[i], pairs[i + 1]);
        return made;
    }
    static Map<String, Object> append(Map<String, Object> in, String line, Map<String, Object> outcome) throws IOException {
        Files.writeString(Path.of((String) in.get("path")), line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
        return outcome;
    }
    static Map<String, Object> send(String path, Map<String, Object> body) throws IOException, InterruptedException {
        var request = HttpRequest.newBuilder(URI.create(URL + "/v1/leases" + path)).timeout(Duration.ofSeconds((long) LEASE + 5))
            .header("Authorization", "Bearer " + KEY).header("Content-Type", "application/json");
        if (body != null) request.POST(HttpRequest.BodyPublishers.ofString(Json.write(body)));
        HttpResponse<String> response = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
        Map<String, Object> answer = response.body().startsWith("{") ? cast(new Json(response.body()).value()) : map();
        if (response.statusCode() < 300) return answer;
        long retryAfterMs = 1000 * response.headers().firstValueAsLong("Retry-After").orElse(1);
        throw new Refused(response.statusCode(), (String) answer.getOrDefault("code", ""), retryAfterMs);
    }

    /** JSON, which the JDK lacks: use your library instead. */
    static class Json {
        final String text; int at = 0;
        Json(String text) { this.text = text; }
        char peek() { while (" \n\r\t".indexOf(text.charAt(at)) >= 0) at++; return text.charAt(at); }
        boolean next(char close) { if (peek() == close) { at++; return false; } if (peek() == ',') at++; return true; }
        Object value() {
            switch (peek()) {
                case '{': { Map<String, Object> found = new LinkedHashMap<>();
                    for (at++; next('}');) { peek(); String key = string(); peek(); at++; found.put(key, value()); } return found; }
                case '[': { List<Object> found = new ArrayList<>(); for (at++; next(']');) found.add(value()); return found; }
                case '"': return string();
                case 't': at += 4; return true;
                case 'f': at += 5; return false;
                case 'n': at += 4; return null;
                default: int from = at; while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) at++;
                    String number = text.substring(from, at);
                    return number.matches("-?\\d{1,18}") ? (Object) Long.valueOf(number) : Double.valueOf(number);
            }
        }
        String string() {
            StringBuilder out = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                if (text.charAt(at) != '\\') { out.append(text.charAt(at)); continue; }
                char escape = text.charAt(++at);
                if (escape == 'u') { out.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16)); at += 4; }
                else { int index = "bfnrt".indexOf(escape); out.append(index < 0 ? escape : "\b\f\n\r\t".charAt(index)); }
            }
            at++;
            return out.toString();
        }
        static String write(Object value) {
            StringJoiner out;
            if (value instanceof Map<?, ?> pairs) {
                out = new StringJoiner(",", "{", "}");
                pairs.forEach((key, item) -> out.add(write(key) + ":" + write(item)));
            } else if (value instanceof Collection<?> items) {
                out = new StringJoiner(",", "[", "]");
                items.forEach(item -> out.add(write(item)));
            } else if (value instanceof String text) {
                StringBuilder quoted = new StringBuilder("\"");
                for (char c : text.toCharArray()) quoted.append(c == '"' || c == '\\' ? "\\" + c : c < ' ' ? String.format("\\u%04x", (int) c) : "" + c);
                return quoted.append('"').toString();
            } else return String.valueOf(value);
            return out.toString();
        }
    }
}
