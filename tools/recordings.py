"""Draw what `holdfast up` and `holdfast top` show, for the documentation: `.venv/bin/python tools/recordings.py`.

The commands run for real, in a terminal of their own and an empty folder: `up --demo` until work flows, `top` beside
it, then Ctrl-C. What they wrote becomes docs/images/up.svg and docs/images/top.svg.
"""

from __future__ import annotations

import fcntl
import os
import pty
import re
import signal
import struct
import subprocess
import sys
import tempfile
import termios
import threading
import time
from pathlib import Path

from rich.console import Console
from rich.text import Text

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "images"
COLUMNS, LINES = 118, 40
FLOWING = 12.0
"""Seconds of the demo before it is looked at: long enough for retries and a dead letter."""

_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_MOVES = re.compile(r"\x1b\[K|\x1b\[\?\d+[hl]")


class Terminal:
    """A command in a terminal, and what it wrote there."""

    def __init__(self, *command: str, folder: Path) -> None:
        ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        path = f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"
        plain = {name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "COLUMNS"))}
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=plain | {"PATH": path, "TERM": "xterm-256color"},
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            start_new_session=True,
        )
        os.close(theirs)
        self._written = b""
        self._reading = threading.Thread(target=self._read, args=(ours,))
        self._reading.start()

    def _read(self, ours: int) -> None:
        try:
            while some := os.read(ours, 65_536):
                self._written += some
        except OSError:  # the other side is closed
            pass
        finally:
            os.close(ours)

    def await_text(self, text: str) -> None:
        """Until it has written this."""
        while text not in self.written():
            if self.process.poll() is not None:
                raise RuntimeError(f"it ended without {text!r}: {self.written()}")
            time.sleep(0.05)

    def end(self, number: signal.Signals | None = None) -> str:
        """All it wrote, once it has ended; `number` asks it to."""
        if number is not None:
            self.process.send_signal(number)
        self.process.wait(120)
        self._reading.join()
        return self.written()

    def written(self) -> str:
        """What it has written, as it stands on the screen: of a line that was written over, the last."""
        lines = _MOVES.sub("", self._written.decode(errors="replace")).replace("\r\n", "\n").split("\n")
        return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def draw(name: str, command: str, written: str) -> None:
    """Write the picture."""
    console = Console(record=True, width=COLUMNS, file=Path(os.devnull).open("w"), force_terminal=True)  # noqa: SIM115
    console.print(Text("$ ", "green") + Text(command, "bold"))
    console.print(Text.from_ansi(written.strip("\n")), soft_wrap=False)
    svg = _FONTS.sub("", console.export_svg(title="holdfast", unique_id=f"holdfast-{name}"))
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.svg").write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")
    print(f"wrote docs/images/{name}.svg")


def main() -> None:
    """Run them, and draw what they show."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        up = Terminal("holdfast", "up", "--demo", folder=folder)
        try:
            up.await_text("dead groups")
            time.sleep(FLOWING)
            draw("top", "holdfast top --once", Terminal("holdfast", "top", "--once", folder=folder).end())
            written = up.end(signal.SIGINT)
        finally:
            if up.process.poll() is None:
                up.process.kill()
    draw("up", "holdfast up --demo", written)


if __name__ == "__main__":
    main()
