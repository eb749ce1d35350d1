"""Network namespace with no interface but loopback, for tests that use hostile addresses.

A test with `@pytest.mark.isolated_network` runs in a pytest process inside a new namespace, so that a mistake
in the product or in the test cannot contact a real address:

    python -m tests.support.network_namespace COMMAND [ARGUMENT…]

runs a command in such a namespace. It needs no root, because the process gets a user namespace too.
"""

from __future__ import annotations

import array
import ctypes
import fcntl
import os
import socket
import struct
import subprocess
import sys
from functools import cache
from pathlib import Path

_CLONE_NEWUSER = 0x1000_0000
_CLONE_NEWNET = 0x4000_0000
_SIOCGIFFLAGS = 0x8913
_SIOCSIFFLAGS = 0x8914
_IFF_UP, _IFF_LOOPBACK = 0x1, 0x8
_REQUEST = struct.Struct("16sh14x")

ROOT = Path(__file__).parents[2]


def is_isolated() -> bool:
    """Return whether no interface of this process can reach another machine."""
    if sys.platform != "linux":
        return False
    names = [name for _, name in socket.if_nameindex()]
    return all(flags & _IFF_LOOPBACK or not flags & _IFF_UP for flags in map(_flags, names))


def require_isolation() -> None:
    """Raise an error outside such a namespace: call it before a hostile address is used."""
    if not is_isolated():
        raise RuntimeError("hostile addresses are used only in a network namespace without other interfaces")


def enter() -> None:
    """Move this process, which must have one thread, into a new namespace with loopback up."""
    user, group = os.getuid(), os.getgid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNET):
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number))
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCSIFFLAGS, _REQUEST.pack(b"lo", _flags("lo") | _IFF_UP))
    require_isolation()


@cache
def missing_reason() -> str | None:
    """Return why this machine has no such namespaces; None if it has them."""
    if is_isolated():
        return None
    done = run_isolated([sys.executable, "-c", "pass"])
    return None if done.returncode == 0 else (done.stdout.strip().splitlines() or ["unknown error"])[-1]


def run_isolated(command: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a new namespace, with its output as text."""
    return subprocess.run(
        [sys.executable, "-m", "tests.support.network_namespace", *command],
        cwd=ROOT, env=os.environ | environment, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip


def _flags(name: str) -> int:
    buffer = array.array("b", _REQUEST.pack(name.encode(), 0))
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as control:
        fcntl.ioctl(control, _SIOCGIFFLAGS, buffer)
    flags: int = _REQUEST.unpack(buffer.tobytes())[1]
    return flags


if __name__ == "__main__":
    enter()
    os.execvp(sys.argv[1], sys.argv[1:])
