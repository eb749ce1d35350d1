/** Code snippets that submit a copy of a job. They never contain an API key. */
import type { JobOut, Json } from "../api/types.gen";
import { stringifyExact } from "./json";

type JobOptions = Pick<JobOut, "type" | "queue" | "payload" | "priority" | "tags" | "timeout" | "max_attempts" | "cost" | "concurrency_key">;

/** Request body that submits a copy of the job, without fields that have their default value. */
export function submission(job: JobOptions): { [key: string]: Json } {
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

/** Shell command that submits a copy. `tenant` is set for administrators, whose API key does not imply a tenant. */
export function asCurl(job: JobOptions, url: string, tenant?: string): string {
  const tenantHeader = tenant === undefined ? "" : `  -H 'Holdfast-Tenant: ${tenant}' \\\n`;
  const body = stringifyExact(submission(job)).replaceAll("'", "'\\''");
  return `curl '${url.replaceAll("'", "'\\''")}' \\\n  -H "Authorization: Bearer $HOLDFAST_API_KEY" \\\n  -H 'Content-Type: application/json' \\\n${tenantHeader}  -d '${body}'`;
}

/** Python program that submits a copy; see `asCurl` for `tenant`. */
export function asPython(job: JobOptions, url: string, tenant?: string): string {
  const { type, payload, ...options } = submission(job);
  if (tenant !== undefined) options.tenant = tenant;
  const keywords = Object.entries(options).map(([name, value]) => `, ${name}=${pythonLiteral(value)}`);
  return `import os\nfrom holdfast.client import Client\n\nwith Client(${pythonLiteral(url)}, key=os.environ["HOLDFAST_API_KEY"]) as client:\n    job = client.submit(${pythonLiteral(type as Json)}, ${pythonLiteral(payload as Json)}${keywords.join("")})\n    print(job.id)`;
}

/** Convert JSON to a Python literal. */
export function pythonLiteral(value: Json): string {
  if (value === null) return "None";
  if (value === true) return "True";
  if (value === false) return "False";
  if (typeof value === "bigint") return value.toString();
  if (typeof value !== "object") return JSON.stringify(value);
  if (Array.isArray(value)) return `[${value.map(pythonLiteral).join(", ")}]`;
  return `{${Object.entries(value).map(([key, field]) => `${JSON.stringify(key)}: ${pythonLiteral(field)}`).join(", ")}}`;
}
