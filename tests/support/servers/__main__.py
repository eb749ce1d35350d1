"""Keeper process: start servers, print their URLs as one line of JSON, and keep them running.

It exits when its standard input closes (Ctrl-D, or the parent process ended), or on SIGTERM or SIGINT. Until then it
reads commands from standard input, `stop NAME` or `start NAME`, and replies to each with a line.
"""

from __future__ import annotations

import argparse
import fcntl
import os
import signal
import stat
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

from tests.support.servers import Missing, Server, encode
from tests.support.servers.given import VARIABLES, given
from tests.support.servers.packages import install, may_install
from tests.support.servers.private import PrivateServer
from tests.support.servers.process import ServerFailedError, scratch
from tests.support.servers.recipes import RECIPES

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

    from tests.support.servers.recipes import Program, Recipe

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: list[str]) -> None:
    """Run the servers that the arguments name, by default all."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.servers", description=__doc__)
    parser.add_argument("--while-locked", type=Path, metavar="FILE", help="exit when this file is no longer locked")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(RECIPES)}; default all")
    options = parser.parse_args(arguments)
    unknown = set(options.names) - set(RECIPES)
    if unknown:
        parser.error(f"unknown server {', '.join(sorted(unknown))}")
    for each in SIGNALS:
        signal.signal(each, _leave)
    with suppress(SystemExit), ExitStack() as stack:
        try:
            found, privates = bring_up(options.names or list(RECIPES), stack)
            print(encode(found), flush=True)
            if any(isinstance(each, Server) for each in found.values()):
                hold(options.while_locked, privates)
        finally:
            _ignore_signals()  # nothing may interrupt the cleanup


def bring_up(names: Iterable[str], stack: ExitStack) -> tuple[dict[str, Server | Missing], dict[str, PrivateServer]]:
    """Start the named servers and those they need; the stack stops them."""
    found: dict[str, Server | Missing] = {}
    privates: dict[str, PrivateServer] = {}
    required = {need for name in names for need in (name, *RECIPES[name].needs)}
    for name in required:
        known = given(name)
        if known:
            found[name] = known
    folder = stack.enter_context(scratch())
    for needy in (False, True):
        recipes = []
        for name in RECIPES:
            if name in required - set(found) and bool(RECIPES[name].needs) is needy:
                behind = {need: found[need] for need in RECIPES[name].needs}
                urls = {need: server.url for need, server in behind.items() if isinstance(server, Server)}
                if without := behind.keys() - urls:
                    found[name] = Missing(f"it needs {', '.join(sorted(without))}, which is missing")
                else:
                    recipes.append(RECIPES[name](urls))
        found |= _start(recipes, folder, stack, privates)
    return {name: found[name] for name in names}, privates


def _start(
    recipes: list[Recipe], folder: Path, stack: ExitStack, started: dict[str, PrivateServer]
) -> dict[str, Server | Missing]:
    """Find and run these servers; add those that run to `started`."""
    found: dict[str, Server | Missing] = {}
    privates = []
    for recipe, program in zip(recipes, find(recipes), strict=True):
        if isinstance(program, Missing):
            found[recipe.name] = program
        else:
            privates.append(PrivateServer(recipe, program, folder))
    found |= run_all(privates, stack)
    started |= {each.recipe.name: each for each in privates if isinstance(found[each.recipe.name], Server)}
    return found


def find(recipes: list[Recipe]) -> list[Program | Missing]:
    """Find the program of each server; install missing ones if permitted."""
    absent = [recipe for recipe in recipes if recipe.find() is None]
    failure = None
    if absent and may_install():
        failure = install(
            sorted({package for recipe in absent for package in recipe.packages}),
            unpack=sorted({package for recipe in absent for package in recipe.unpacks}),
        )
    return [recipe.find() or Missing(failure or _advice(recipe)) for recipe in recipes]


def run_all(privates: list[PrivateServer], stack: ExitStack) -> dict[str, Server | Missing]:
    """Prepare all servers concurrently, start them, and wait until each responds."""
    found: dict[str, Server | Missing] = {}
    with ThreadPoolExecutor() as pool:
        prepared = [pool.submit(private.prepare) for private in privates]
    for private, done in zip(privates, prepared, strict=True):
        if done.exception() is None:
            stack.callback(private.stop)
            private.start()
    for private, done in zip(privates, prepared, strict=True):
        try:
            done.result()
            found[private.recipe.name] = private.wait()
        except (ServerFailedError, OSError) as error:
            found[private.recipe.name] = Missing(str(error))
    return found


def hold(lock: Path | None, privates: dict[str, PrivateServer]) -> None:
    """Wait until the file is unlocked, or execute commands until standard input closes."""
    if lock is not None:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
        return
    kind = os.fstat(0).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(0)):
        while True:  # /dev/null or a file never closes: wait for a signal
            signal.pause()
    for line in sys.stdin:
        execute(line.split(), privates)


def execute(words: list[str], privates: dict[str, PrivateServer]) -> None:
    """Stop or start a server on the same port with the same data, and print when it is done."""
    match words:
        case ["stop", name] if name in privates:
            privates[name].stop()
            print(f"stopped {name}", flush=True)
        case ["start", name] if name in privates:
            privates[name].start()
            privates[name].wait()
            print(f"started {name}", flush=True)
        case _:
            print(f"unknown command: write `stop` or `start`, and one of {', '.join(privates)}", flush=True)


def _advice(recipe: Recipe) -> str:
    advice = f"{recipe.program} is not installed; `apt-get install {' '.join(recipe.packages or recipe.unpacks)}`"
    variable = VARIABLES.get(recipe.name)
    return f"{advice}, or set {variable}" if variable else advice


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise SystemExit


def _ignore_signals() -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


if __name__ == "__main__":
    main(sys.argv[1:])
