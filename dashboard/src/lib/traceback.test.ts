import { expect, it } from "vitest";
import { foldEngineFrames } from "./traceback";

const HEAD = "Traceback (most recent call last):\n";
const ENGINE = '  File "/venv/site-packages/holdfast/worker/running/runner.py", line 130, in run\n    result = await call()\n             ^^^^^^\n';
const THREAD = '  File "/usr/lib/python3.12/concurrent/futures/thread.py", line 58, in run\n    result = self.fn()\n';
const HANDLER = '  File "/home/ada/holdfast/jobs.py", line 7, in send\n    raise ValueError("bad address")\n';
const ERROR = "ValueError: bad address\n";

it("folds the frames of the engine before those of the handler", () => {
  expect(foldEngineFrames(HEAD + ENGINE + THREAD + ENGINE + HANDLER + ERROR)).toEqual([
    { text: HEAD, frames: 0 },
    { text: ENGINE + THREAD + ENGINE, frames: 3 },
    { text: HANDLER + ERROR, frames: 0 },
  ]);
});

it("keeps the frame that raised the error", () => {
  expect(foldEngineFrames(HEAD + HANDLER + ENGINE + ENGINE + ERROR)).toEqual([
    { text: HEAD + HANDLER, frames: 0 },
    { text: ENGINE, frames: 1 },
    { text: ENGINE + ERROR, frames: 0 },
  ]);
});

it.each([HEAD + HANDLER + THREAD + HANDLER + ERROR, "killed by signal 9", ""])("keeps a text without frames of the engine", (text) => {
  expect(foldEngineFrames(text).map((part) => part.text).join("")).toBe(text);
  expect(foldEngineFrames(text).every((part) => part.frames === 0)).toBe(true);
});
