"""Generate the synchronous HTTP client from the asynchronous one.

    python tools/sync_client.py          write client.py and operations.py in src/holdfast/sdk
    python tools/sync_client.py --check  fail if a file is out of date

The transform works on tokens: it drops `async` and `await` and replaces the names in `NAMES`. `./dev fmt` runs it, and
a test compares its output with the committed file.
"""

import io
import re
import subprocess
import sys
import tokenize
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / "src" / "holdfast" / "sdk"
MODULES = {"async_client.py": "client.py", "async_operations.py": "operations.py"}
"""Generated file of each source."""

NAMES = {
    "AsyncClient": "Client",
    "AsyncIterator": "Iterator",
    "AsyncOperations": "Operations",
    "Sender": "SyncSender",
    "__aenter__": "__enter__",
    "__aexit__": "__exit__",
    "aclose": "close",
    "aclosing": "closing",
    "async_operations": "operations",
    "asyncio": "time",
    "sender": "sync_sender",
}
"""Replacements of whole names, in code and in docstrings."""

PHRASES = {
    "HTTP client for asynchronous code.\n\n`tools/sync_client.py` generates `client.py` from this module.": (
        "HTTP client for synchronous code.\n\nGenerated from `async_client.py` by `tools/sync_client.py`; do not edit."
    ),
    "client for asynchronous code.\n\n`tools/sync_client.py` generates `operations.py` from this module.": (
        "client for synchronous code.\n\nGenerated from `async_operations.py` by `tools/sync_client.py`; do not edit."
    ),
    "for asynchronous code. Belongs to one event loop.": "for synchronous code. Safe to use from many threads.",
}
"""Replacements in docstrings."""


def transform(source: str) -> str:
    """Return the synchronous module for the source of the asynchronous one, before formatting."""
    result: list[str] = []
    skipping = False
    lines = source.splitlines(keepends=True)
    position = (1, 0)
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if not skipping:
            result.append(_between(lines, position, token.start))
        skipping = token.type == tokenize.NAME and token.string in ("async", "await")
        if not skipping:
            result.append(_replace(token))
        position = token.end
    return "".join(result)


def generate(source: str) -> str:
    """Return the formatted content of the file that is generated from this one."""
    ruff = [sys.executable, "-m", "ruff"]
    text = transform((FOLDER / source).read_text())
    for step in (["check", "--fix-only", "--unsafe-fixes", "--select", "I,UP028", "--quiet"], ["format", "--quiet"]):
        command = [*ruff, *step, "--stdin-filename", str(FOLDER / MODULES[source]), "-"]
        text = subprocess.run(command, input=text, capture_output=True, text=True, check=True, cwd=ROOT).stdout
    return text


def _between(lines: list[str], start: tuple[int, int], end: tuple[int, int]) -> str:
    """Return the source between two tokens, which is white space and line continuations."""
    if start[0] == end[0]:
        return lines[start[0] - 1][start[1] : end[1]] if start[0] <= len(lines) else ""
    middle = "".join(lines[start[0] : end[0] - 1])
    last = lines[end[0] - 1][: end[1]] if end[0] <= len(lines) else ""
    return lines[start[0] - 1][start[1] :] + middle + last


def _replace(token: tokenize.TokenInfo) -> str:
    if token.type == tokenize.NAME:
        return NAMES.get(token.string, token.string)
    if token.type == tokenize.STRING:
        text = token.string
        for old, new in PHRASES.items():
            text = text.replace(old, new)
        text = re.sub(r"\b(async|await) ", "", text)
        return re.sub(r"\b\w+\b", lambda match: NAMES.get(match[0], match[0]), text)
    return token.string


def main() -> int:
    """Write the files, or compare them with `--check`."""
    code = 0
    for source, target in MODULES.items():
        text, path = generate(source), FOLDER / target
        if path.exists() and path.read_text() == text:
            continue
        if "--check" in sys.argv[1:]:
            print(f"{path.relative_to(ROOT)} is out of date: run ./dev fmt")
            code = 1
        else:
            path.write_text(text)
    return code


if __name__ == "__main__":
    sys.exit(main())
