"""Removal of secrets from the command line that the process list shows."""

import re
from contextlib import suppress
from pathlib import Path

_KEY_FLAG = re.compile(rb"--(?:api-)?key")
_KEY_VALUE = re.compile(rb"(?<=key=).+", re.DOTALL)
_IN_URL = re.compile(rb"(?<=:).+(?=@)|(?<=password=)[^&#]+|(?<=passwd=)[^&#]+", re.DOTALL)
_ARG_START = 45
"""Index of `arg_start` among the fields of /proc/self/stat after the name."""


def hide_secrets() -> None:
    """Overwrite API keys and passwords in the arguments that `ps` shows. Works on Linux only.

    The arguments are visible until this runs, a fraction of a second after the start: settings in the environment or
    in a file are never visible.
    """
    with suppress(OSError, ValueError, IndexError):
        arguments = Path("/proc/self/cmdline").read_bytes()
        masked = mask(arguments)
        if masked == arguments:
            return
        fields = Path("/proc/self/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2].split()
        start = int(fields[_ARG_START])
        if start:
            import ctypes

            ctypes.memmove(start, masked, len(masked))


def mask(arguments: bytes) -> bytes:
    """Return NUL-separated arguments with a star for each byte of a secret."""
    masked: list[bytes] = []
    for argument in arguments.split(b"\0"):
        if masked and _KEY_FLAG.fullmatch(masked[-1]):
            masked.append(_stars(argument))
        elif _KEY_FLAG.fullmatch(argument.partition(b"=")[0]):
            masked.append(_KEY_VALUE.sub(lambda match: _stars(match[0]), argument))
        elif b"://" in argument:
            head, separator, rest = argument.partition(b"://")
            masked.append(head + separator + _IN_URL.sub(lambda match: _stars(match[0]), rest))
        else:
            masked.append(argument)
    return b"\0".join(masked)


def _stars(secret: bytes) -> bytes:
    return b"*" * len(secret)
