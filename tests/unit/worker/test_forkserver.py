"""Fork server: parentage of forked processes, and applications that must not be forked."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
import textwrap

import pytest

from holdfast.worker.processes.forkserver import SOCKET_TYPE, ForkServer, adopting
from tests.support.eventually import eventually
from tests.support.nodes import ROOT, children_of

pytestmark = [
    pytest.mark.skipif(sys.platform != "linux", reason="processes are forked on Linux only"),
    pytest.mark.slow,  # starts processes
]

PROGRAM = """
import os, socket, sys
sys.path[:0] = [{root!r}]
from holdfast.worker.processes import forkserver
line = socket.socket(fileno=int(sys.argv[1]))
(descriptor,) = forkserver.serve(line)
mine = socket.socket(fileno=descriptor)
try:
    mine.send(f"{{os.getpid()}} {{os.getppid()}} {{os.getsid(0)}}".encode())
    code = int(mine.recv(10) or b"0")
except ConnectionError:
    code = 0
os._exit(code)
"""


@pytest.fixture
def forkserver():
    """Return a running fork server and its process."""
    ours, theirs = socket.socketpair(*SOCKET_TYPE)
    text = textwrap.dedent(PROGRAM).format(root=str(ROOT / "src"))
    process = subprocess.Popen([sys.executable, "-c", text, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    theirs.close()
    made = ForkServer(ours)
    yield made, process
    made.close()
    process.kill()
    process.wait()


@pytest.fixture
def born(forkserver):
    """Return a function that forks a process: the process, a channel to it, and its pid, parent and session."""
    lines = []

    async def fork_one():
        ours, theirs = socket.socketpair()
        lines.append(ours)
        ours.setblocking(False)
        process = await forkserver[0].start([theirs.fileno()])
        theirs.close()
        said = (await asyncio.get_running_loop().sock_recv(ours, 100)).decode()
        return process, ours, [int(each) for each in said.split()]

    yield fork_one
    for line in lines:
        line.close()


async def test_a_forked_process_is_a_child_of_the_requester_and_leads_its_own_session(born):
    """F45: the requester can wait for it and learns how it ended."""
    process, line, (pid, parent, session) = await born()
    assert (pid, session, parent) == (process.pid, process.pid, os.getpid())
    line.send(b"7")
    assert await process.wait() == process.returncode == 7
    process, _, _ = await born()
    os.kill(process.pid, signal.SIGSEGV)
    assert await process.wait() == -signal.SIGSEGV


async def test_a_forked_process_outlives_its_fork_server(forkserver, born):
    """P23, F30: the death of a fork server costs only time."""
    made, keeper = forkserver
    process, line, _ = await born()
    keeper.kill()
    keeper.wait()
    assert await made.start([line.fileno()]) is None
    assert made.gone
    line.send(b"3")
    assert await process.wait() == 3


async def test_concurrent_and_cancelled_fork_requests_leave_no_process_behind(forkserver):
    """F34: each request gets its own process; those of cancelled requests are killed, and no zombie remains."""
    made, keeper = forkserver
    before = children_of(os.getpid(), zombies=True)
    lines = [socket.socketpair() for _ in range(12)]
    asking = [asyncio.create_task(made.start([theirs.fileno()])) for _, theirs in lines]
    await asyncio.sleep(0)
    for each in asking[::3]:
        each.cancel()
    started = [
        each for each in await asyncio.gather(*asking, return_exceptions=True) if not isinstance(each, BaseException)
    ]
    for ours, theirs in lines:
        theirs.close()
        ours.close()
    assert len({each.pid for each in started}) == len(started) == 8
    assert [await each.wait() for each in started] == [0] * 8

    async def none_left():
        return set(children_of(os.getpid(), zombies=True)) <= {*before, keeper.pid}

    await eventually(none_left)


async def test_a_process_that_is_forked_too_late_exits(forkserver, monkeypatch):
    """P22: the requester has started another process instead by then."""
    made, keeper = forkserver
    monkeypatch.setattr("holdfast.worker.processes.forkserver.FORK_TIMEOUT_S", 0.05)
    before = {*children_of(os.getpid(), zombies=True)}
    ours, theirs = socket.socketpair()
    with ours, adopting():  # as if the fork was in time and only the response was late
        keeper.send_signal(signal.SIGSTOP)
        assert await made.start([theirs.fileno()]) is None
        theirs.close()
        keeper.send_signal(signal.SIGCONT)
        ours.setblocking(False)
        assert not await asyncio.get_running_loop().sock_recv(ours, 100)  # it exited without a message
    for late in {*children_of(os.getpid(), zombies=True)} - before:
        await asyncio.to_thread(os.waitpid, late, 0)


LEFT_OPEN = {
    "nothing": ("", None),
    "log": ("kept = open(sys.argv[1] + '/log', 'a')", None),
    "null": ("kept = open('/dev/null', 'r+')", None),
    "thread": ("threading.Thread(target=time.sleep, args=(60,), daemon=True).start()", "it has started 1 thread"),
    "file": ("kept = open(sys.argv[1] + '/data', 'w')", "/data open"),
    "connection": ("kept = socket.socketpair()", "socket:"),
    "loop": ("import asyncio; kept = asyncio.new_event_loop()", " open"),
}


@pytest.mark.parametrize("left, reason", LEFT_OPEN.values(), ids=LEFT_OPEN)
def test_fork_hazard_names_threads_and_connections_of_the_application(left, reason, tmp_path):
    """F45: threads and connections must not exist in two processes."""
    text = f"""
import socket, sys, threading, time
sys.path[:0] = [{str(ROOT / "src")!r}]
from holdfast.worker.processes.forkserver import open_descriptors, fork_hazard
known = open_descriptors()
{left}
print(fork_hazard(known))
"""
    found = subprocess.run([sys.executable, "-c", text, str(tmp_path)], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "None" if reason is None else reason in found.stdout
