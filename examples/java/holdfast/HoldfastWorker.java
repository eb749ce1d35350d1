package holdfast;

import java.io.IOException;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;

/**
 * Worker over HTTP with the JDK (17 or newer) alone: copy this package beside your handlers.
 *
 * <p>It follows docs/reference/worker-protocol.md, and Conformance.java runs it under `holdfast protocol check`. Each
 * job runs in a thread; a handler stops at its next call of a method of its job.
 */
public final class HoldfastWorker {
    /** Runs one attempt of a job; returns its result, or throws an exception. */
    public interface Handler {
        Object run(Job job) throws Exception;
    }

    /** The job cannot succeed: do not retry it. */
    public static class PermanentError extends Exception {
        public PermanentError(String message) {
            super(message);
        }
    }

    /** The attempt failed: run the job again after this delay in seconds, or by its rule if the delay is null. */
    public static class Retry extends Exception {
        final Number delay;

        public Retry(String message, Number delay) {
            super(message);
            this.delay = delay;
        }
    }

    /** Run the job again after this delay in seconds; the attempt does not count. */
    public static class Snooze extends Exception {
        final Number delay;

        public Snooze(Number delay) {
            this.delay = delay;
        }
    }

    /** The handler must stop. Not an Exception, so that handlers do not catch it by accident. */
    static class Stopped extends Error {}

    /** The node refused a call. */
    static class Refused extends RuntimeException {
        final int status;
        final String code;
        final long retryAfterMs;

        Refused(int status, String code, long retryAfterMs) {
            super(status + " " + code);
            this.status = status;
            this.code = code;
            this.retryAfterMs = retryAfterMs;
        }

        /** Tell whether the request must not be repeated unchanged. */
        boolean isInvalid() {
            return List.of(400, 413, 415, 422).contains(status);
        }
    }

    final String url = setting("HOLDFAST_API_URL", "http://127.0.0.1:8080").replaceAll("/+$", "");
    final String key = setting("HOLDFAST_API_KEY", "");
    final int slots = Integer.parseInt(setting("HOLDFAST_SLOTS", "4"));
    final double lease = Double.parseDouble(setting("HOLDFAST_LEASE_SECONDS", "15"));
    final double drainTime = Double.parseDouble(setting("HOLDFAST_DRAIN_SECONDS", "30"));
    final List<String> queues;
    final Map<String, Handler> handlers = new LinkedHashMap<>();
    volatile double drainUntil = 0;  // 0 until the worker is asked to drain; then a time of `clock`
    private final HttpClient http = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    /** Create a worker for these queues, unless the environment variable HOLDFAST_QUEUES names others. */
    public HoldfastWorker(String... queues) {
        this.queues = List.of(setting("HOLDFAST_QUEUES", String.join(",", queues)).split(","));
    }

    /** Set the handler of a job type. */
    public HoldfastWorker handle(String type, Handler handler) {
        handlers.put(type, handler);
        return this;
    }

    /** Work until SIGTERM or Ctrl-C; register again after a lost lease. */
    public void run() throws InterruptedException {
        Thread main = Thread.currentThread();
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            drain();
            try {
                main.join();
            } catch (InterruptedException ended) {
                System.err.println("the worker exits before it has drained");
            }
            Runtime.getRuntime().halt(0);
        }));
        while (drainUntil == 0) {
            try {
                new Registration(this).run();
            } catch (IOException | Refused error) {
                System.err.println("cannot register at " + url + ": " + error);
                Thread.sleep(error instanceof Refused refused ? refused.retryAfterMs : 1000);
            }
        }
    }

    /** Claim no more jobs; let running ones finish for the drain time. */
    void drain() {
        if (drainUntil == 0) drainUntil = clock() + drainTime;
    }

    /** Send one request below /v1/leases, a GET if the body is null; return the decoded response. */
    Map<String, Object> send(String path, Map<String, Object> body) throws IOException, InterruptedException {
        HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(url + "/v1/leases" + path))
            .timeout(Duration.ofMillis((long) (lease * 1000) + 5000))
            .header("Authorization", "Bearer " + key)
            .header("Content-Type", "application/json");
        if (body != null) request.POST(HttpRequest.BodyPublishers.ofString(Json.write(body)));
        HttpResponse<String> response = http.send(request.build(), HttpResponse.BodyHandlers.ofString());
        Map<String, Object> answer = response.body().startsWith("{") ? object(response.body()) : Json.map();
        if (response.statusCode() < 300) return answer;
        long retryAfter = response.headers().firstValueAsLong("Retry-After").orElse(1);
        throw new Refused(response.statusCode(), (String) answer.getOrDefault("code", ""), 1000 * retryAfter);
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> object(String text) {
        return (Map<String, Object>) Json.read(text);
    }

    /** Return seconds of a monotonic clock, always positive. */
    static double clock() {
        return System.nanoTime() / 1e9 + 1e10;
    }

    private static String setting(String name, String otherwise) {
        return System.getenv().getOrDefault(name, otherwise);
    }
}
