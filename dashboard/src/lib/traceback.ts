/** Part of a traceback: text to show, or frames of the engine to fold. */
export interface TracebackPart {
  text: string;
  /** Number of folded frames; 0 for text to show. */
  frames: number;
}

const FRAME = /^ {2}File "([^"]*)", line \d+/;
const ENGINE = /[/\\]holdfast[/\\](?:app|builtin|cli|compose|engine|loop_thread|sdk|store|tasks|worker)\b/;
const PLUMBING = /[/\\](?:asyncio|concurrent[/\\]futures|contextlib\.py|threading\.py)/;

/**
 * Split a traceback so that frames of the engine can be folded, like `fold_engine_frames` of the server.
 *
 * Frames of asyncio and threads are folded with those of the engine beside them. The last frame before a message
 * stays, because the error was raised there.
 */
export function foldEngineFrames(traceback: string): TracebackPart[] {
  const parts: TracebackPart[] = [];
  let run: string[] = [];
  const show = (text: string) => {
    const last = parts.at(-1);
    if (last && last.frames === 0) last.text += text;
    else if (text) parts.push({ text, frames: 0 });
  };
  const endRun = (raised: boolean) => {
    const hidden = raised ? run.slice(0, -1) : run;
    const folds = hidden.some((frame) => ENGINE.test(frame));
    if (folds) parts.push({ text: hidden.join(""), frames: hidden.length });
    show((folds ? run.slice(hidden.length) : run).join(""));
    run = [];
  };
  for (const line of traceback.match(/[^\n]*\n|[^\n]+$/g) ?? []) {
    const path = FRAME.exec(line)?.[1];
    if (path !== undefined && (ENGINE.test(path) || PLUMBING.test(path))) run.push(line);
    else if (run.length > 0 && line.startsWith("    ")) run[run.length - 1] += line;
    else {
      endRun(path === undefined);
      show(line);
    }
  }
  endRun(true);
  return parts;
}
