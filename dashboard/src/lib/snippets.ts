/** A job as something to paste: into a shell, or into Python. Never with a key in it. */
import type { JobOut, Json } from "../api/types.gen";
import { stringifyExact } from "./json";

type Given = Pick<JobOut, "type" | "queue" | "payload" | "priority" | "tags" | "timeout" | "max_attempts" | "cost" | "concurrency_key">;

/** What would submit this job again, without what is as it is by default. */
export function submission(job: Given): { [key: string]: Json } {
  return {
    type: job.type,
    queue: job.queue,
    payload: job.payload,
    ...(job.priority ? { priority: job.priority } : {}),
    ...(job.tags.length ? { tags: job.tags } : {}),
    ...(job.timeout === null ? {} : { timeout: job.timeout }),
    ...(job.cost === 1 ? {} : { cost: job.cost }),
    ...(job.concurrency_key === null ? {} : { concurrency_key: job.concurrency_key }),
    max_attempts: job.max_attempts,
  };
}

/** `tenant`: for administrators, whose key is nobody's in particular. */
export function asCurl(job: Given, url: string, tenant?: string): string {
  const whose = tenant === undefined ? "" : `  -H 'Holdfast-Tenant: ${tenant}' \\\n`;
  const body = stringifyExact(submission(job)).replaceAll("'", "'\\''");
  return `curl '${url.replaceAll("'", "'\\''")}' \\\n  -H "Authorization: Bearer $HOLDFAST_API_KEY" \\\n  -H 'Content-Type: application/json' \\\n${whose}  -d '${body}'`;
}

export function asPython(job: Given, url: string, tenant?: string): string {
  const { type, payload, ...options } = submission(job);
  if (tenant !== undefined) options.tenant = tenant;
  const given = Object.entries(options).map(([name, value]) => `, ${name}=${python(value)}`);
  return `import os\nfrom holdfast.client import Client\n\nwith Client(${python(url)}, key=os.environ["HOLDFAST_API_KEY"]) as client:\n    job = client.submit(${python(type as Json)}, ${python(payload as Json)}${given.join("")})\n    print(job.id)`;
}

/** JSON as Python writes it. */
export function python(value: Json): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(python).join(", ")}]`;
  return `{${Object.entries(value).map(([key, each]) => `${JSON.stringify(key)}: ${python(each)}`).join(", ")}}`;
}
