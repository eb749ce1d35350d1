import static holdfast.Json.map;

import holdfast.HoldfastWorker;
import holdfast.HoldfastWorker.PermanentError;
import holdfast.HoldfastWorker.Retry;
import holdfast.HoldfastWorker.Snooze;
import holdfast.Job;
import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;

/** Job types of the conformance kit, run by the loop in the package `holdfast`. */
public class Conformance {
    public static void main(String[] arguments) throws InterruptedException {
        new HoldfastWorker("protocol")
            .handle("check.echo", job -> job.get("value"))
            .handle("check.fail", Conformance::fail)
            .handle("check.snooze", Conformance::snooze)
            .handle("check.tick", Conformance::tick)
            .handle("check.steps", Conformance::steps)
            .handle("check.large", job -> "x".repeat((int) job.number("bytes")))
            .run();
    }

    /** Fail the first attempts. */
    static Object fail(Job job) throws Exception {
        if (job.attempts() > job.number("times")) return map("attempts", job.attempts());
        String message = (String) job.get("message");
        if (job.get("retryable").equals(true)) throw new Retry(message, (Number) job.get("retry_in"));
        throw new PermanentError(message);
    }

    /** Snooze once. */
    static Object snooze(Job job) throws Exception {
        if (Files.exists(Path.of((String) job.get("path")))) return map("snoozed", true);
        append(job, "snoozed");
        throw new Snooze((Number) job.get("delay"));
    }

    /** Write a line every tenth of a second. */
    static Object tick(Job job) throws Exception {
        long began = System.nanoTime();
        for (double passed = 0; passed < job.number("seconds"); passed = (System.nanoTime() - began) / 1e9) {
            append(job, job.id + " " + job.fence);
            if (job.get("progress").equals(true)) job.progress(passed / job.number("seconds"));
            job.sleep(100);
        }
        return map("fence", job.fence);
    }

    /** Run one step at least once, and another at most once. */
    static Object steps(Job job) throws Exception {
        Object stop = job.attempts() == 1 ? job.get("stop") : "";
        Object first = job.step("first", () -> {
            append(job, "first");
            return map("fence", job.fence);
        });
        if (stop.equals("first")) throw new Retry("stopped after the first step", 0);
        Object charge = job.stepAtMostOnce("charge", () -> {
            append(job, "charge");
            if (stop.equals("charge")) throw new Retry("stopped within the step 'charge'", 0);
            return "charged";
        });
        return map("first", first, "charge", charge);
    }

    /** Append a line to the file of a job in one write. */
    static void append(Job job, String line) throws IOException {
        Path path = Path.of((String) job.get("path"));
        Files.writeString(path, line + "\n", StandardOpenOption.CREATE, StandardOpenOption.APPEND);
    }
}
