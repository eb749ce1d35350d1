/** Client and worker of holdfast over HTTP. */
export { Client, type ClientOptions, type JobFilter, type JobOptions } from "./client.js";
export {
  CancelJob,
  ConnectionError,
  HoldfastError,
  JobFailed,
  PermanentError,
  RetryIn,
  Snooze,
  StepOutcomeUnknown,
  StopError,
} from "./errors.js";
export type { Job, LogFields, LogLevel } from "./job.js";
export { type Handler, Worker, type WorkerOptions } from "./worker.js";
export type * as wire from "./wire.gen.js";
