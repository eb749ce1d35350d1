"""Record `holdfast up` and `holdfast top` as SVG for the documentation: `.venv/bin/python tools/recordings.py`.

The commands run for real, in a pseudo-terminal and an empty folder: `up --demo` until jobs are running, then `top`,
then Ctrl-C. Their output becomes docs/images/up.svg and docs/images/top.svg.
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
WARM_UP_S = 12.0
"""Run time of the demo before it is recorded: long enough for retries and a dead letter."""

_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)
_CONTROL_SEQUENCES = re.compile(r"\x1b\[K|\x1b\[\?\d+[hl]")


class Terminal:
    """A command running in a pseudo-terminal, and its output."""

    def __init__(self, *command: str, folder: Path) -> None:
        master, slave = pty.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", LINES, COLUMNS, 0, 0))
        path = f"{Path(sys.prefix) / 'bin'}:{os.environ['PATH']}"
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("HOLDFAST_", "COLUMNS"))
        }
        self.process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment | {"PATH": path, "TERM": "xterm-256color"},
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
        )
        os.close(slave)
        self._output = b""
        self._reader = threading.Thread(target=self._read, args=(master,))
        self._reader.start()

    def _read(self, master: int) -> None:
        try:
            while chunk := os.read(master, 65_536):
                self._output += chunk
        except OSError:  # the command closed its side
            pass
        finally:
            os.close(master)

    def await_text(self, text: str) -> None:
        """Wait until the output contains `text`."""
        while text not in self.screen():
            if self.process.poll() is not None:
                raise RuntimeError(f"the command exited without printing {text!r}: {self.screen()}")
            time.sleep(0.05)

    def wait(self, stop_signal: signal.Signals | None = None) -> str:
        """Wait until the command exits, sending `stop_signal` first if given, and return its output."""
        if stop_signal is not None:
            self.process.send_signal(stop_signal)
        self.process.wait(120)
        self._reader.join()
        return self.screen()

    def screen(self) -> str:
        """Return the output as it appears on the screen, with overwritten lines resolved."""
        lines = _CONTROL_SEQUENCES.sub("", self._output.decode(errors="replace")).replace("\r\n", "\n").split("\n")
        return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def write_svg(name: str, command: str, output: str) -> None:
    """Write the SVG of a command and its output."""
    console = Console(record=True, width=COLUMNS, file=Path(os.devnull).open("w"), force_terminal=True)  # noqa: SIM115
    console.print(Text("$ ", "green") + Text(command, "bold"))
    console.print(Text.from_ansi(output.strip("\n")), soft_wrap=False)
    svg = _FONTS.sub("", console.export_svg(title="holdfast", unique_id=f"holdfast-{name}"))
    FOLDER.mkdir(parents=True, exist_ok=True)
    (FOLDER / f"{name}.svg").write_text("\n".join(line.rstrip() for line in svg.splitlines()) + "\n")
    print(f"wrote docs/images/{name}.svg")


def main() -> None:
    """Run the commands and record them."""
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        up = Terminal("holdfast", "up", "--demo", folder=folder)
        try:
            up.await_text("dead groups")
            time.sleep(WARM_UP_S)
            write_svg("top", "holdfast top --once", Terminal("holdfast", "top", "--once", folder=folder).wait())
            output = up.wait(signal.SIGINT)
        finally:
            if up.process.poll() is None:
                up.process.kill()
    write_svg("up", "holdfast up --demo", output)


if __name__ == "__main__":
    main()
