"""Shorter tracebacks: frames of the engine around a handler are folded into one line."""

import re

_FRAME = re.compile(r'  File "([^"\n]*)", line \d+')
_ENGINE = re.compile(r"[/\\]holdfast[/\\](?:app|builtin|cli|compose|engine|loop_thread|sdk|store|tasks|worker)\b")
_PLUMBING = re.compile(r"[/\\](?:asyncio|concurrent[/\\]futures|contextlib\.py|threading\.py)")


def fold_engine_frames(traceback: str) -> str:
    """Replace the frames of holdfast in a formatted traceback by their number.

    Frames of asyncio and of threads are folded together with those of holdfast beside them. The last frame before a
    message stays, because the error was raised there.
    """
    folded: list[str] = []
    run: list[list[str]] = []
    for line in traceback.splitlines():
        frame = _FRAME.match(line)
        if frame is not None and _is_internal(frame[1]):
            run.append([line])
        elif run and line.startswith("    "):
            run[-1].append(line)
        else:
            folded += _fold(run, ended=frame is None)
            run = []
            folded.append(line)
    folded += _fold(run, ended=True)
    return "\n".join(folded) + ("\n" if traceback.endswith("\n") else "")


def _is_internal(path: str) -> bool:
    return _ENGINE.search(path) is not None or _PLUMBING.search(path) is not None


def _fold(run: list[list[str]], *, ended: bool) -> list[str]:
    """Return the lines for a run of internal frames; the last one stays if it raised."""
    hidden, kept = (run[:-1], run[-1:]) if ended else (run, [])
    if not any(_ENGINE.search(frame[0]) for frame in hidden):
        hidden, kept = [], run
    count = len(hidden)
    summary = [f"  … {count} frame{'' if count == 1 else 's'} of holdfast"] if count else []
    return summary + [line for frame in kept for line in frame]
