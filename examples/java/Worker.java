import static holdfast.Json.map;

import holdfast.HoldfastWorker;
import holdfast.HoldfastWorker.PermanentError;
import holdfast.HoldfastWorker.Snooze;
import holdfast.Job;

/**
 * A worker that sends welcome messages and computes reports, over HTTP with the JDK (17 or newer) alone.
 *
 * <pre>
 * export HOLDFAST_API_URL=http://localhost:8080 HOLDFAST_API_KEY=hf_…
 * javac -d build Worker.java
 * java -cp build Worker
 * </pre>
 *
 * Submit a job for it:
 *
 * <pre>
 * curl "$HOLDFAST_API_URL/v1/jobs" -H "Authorization: Bearer $HOLDFAST_API_KEY" -H "Content-Type: application/json" \
 *     -d '{"type": "welcome", "queue": "mail", "payload": {"address": "ada@example.org"}}'
 * </pre>
 *
 * The package `holdfast` beside this file has the loop: it registers, claims, renews the lease, reports outcomes and
 * drains.
 */
public class Worker {
    public static void main(String[] arguments) throws InterruptedException {
        new HoldfastWorker("mail", "reports")
            .handle("welcome", Worker::welcome)
            .handle("report", Worker::report)
            .run();  // until SIGTERM or Ctrl-C; running jobs may finish for 30 s, then they are released
    }

    /** Send a welcome message. */
    static Object welcome(Job job) throws Exception {
        String address = (String) job.get("address");
        if (!address.contains("@")) {
            throw new PermanentError(address + " is not an address");  // the job is dead; other errors are retried
        }
        // A later attempt gets the recorded text and does not render it again.
        String text = (String) job.step("render", () -> "Welcome, " + address);
        try {
            // The mail service recognises the key of a repeated call.
            Object messageId = job.step("send", () -> sendMail(address, text, job.idempotencyKey("send")));
            return map("message_id", messageId);
        } catch (ServiceBusy busy) {
            throw new Snooze(60);  // runs again in a minute, and this attempt does not count
        }
    }

    /**
     * Add up the revenue of many days.
     *
     * <p>`job.sleep`, `job.step` and `job.progress` end the handler when it must stop: the job was cancelled or timed
     * out, the drain time is over, or the worker has lost its lease. A handler that waits for nothing calls
     * `job.sleep(0)`.
     */
    static Object report(Job job) throws Exception {
        int days = (int) job.number("days");
        long total = 0;
        for (int day = 0; day < days; day++) {
            total += revenue(day);
            job.progress((day + 1.0) / days);
            job.sleep(10);  // stands for the time of the query
        }
        return map("days", days, "revenue", total);
    }

    /** The mail service asks to try again later. */
    static class ServiceBusy extends Exception {}

    /** Stand for the call of a mail service; return the id of the message. */
    static String sendMail(String address, String text, String key) throws ServiceBusy {
        return key + " to " + address + ", " + text.length() + " characters";
    }

    /** Stand for a query. */
    static int revenue(int day) {
        return 100 + day % 7;
    }
}
