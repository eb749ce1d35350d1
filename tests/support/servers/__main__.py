"""The keeper: bring servers up, print their URLs as one line of JSON, and hold them until told to end.

It ends when its standard input closes (Ctrl-D, or the one who started it is gone), or by SIGTERM or SIGINT.
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
from tests.support.servers.private import Private
from tests.support.servers.process import ServerFailedError, scratch
from tests.support.servers.recipes import RECIPES, Program, Recipe

if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import FrameType

SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(arguments: list[str]) -> None:
    """Keep the servers that the arguments name, or all."""
    parser = argparse.ArgumentParser(prog="python -m tests.support.servers", description=__doc__)
    parser.add_argument("--while-locked", type=Path, metavar="FILE", help="end when nobody locks this file any more")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"one of {', '.join(RECIPES)}; default all")
    asked = parser.parse_args(arguments)
    unknown = set(asked.names) - set(RECIPES)
    if unknown:
        parser.error(f"unknown server {', '.join(sorted(unknown))}")
    for each in SIGNALS:
        signal.signal(each, _leave)
    with suppress(SystemExit), ExitStack() as stack:
        try:
            found = bring_up(asked.names or list(RECIPES), stack)
            print(encode(found), flush=True)
            if any(isinstance(each, Server) for each in found.values()):
                hold(asked.while_locked)
        finally:
            _ignore_signals()  # from here on nothing interrupts the cleaning up


def bring_up(names: Iterable[str], stack: ExitStack) -> dict[str, Server | Missing]:
    """Bring the named servers up together; the stack takes them down again."""
    found: dict[str, Server | Missing] = {}
    programs: dict[str, Program] = {}
    for name in names:
        known = given(name)
        if known:
            found[name] = known
    recipes = [RECIPES[name]() for name in names if name not in found]
    for recipe, program in zip(recipes, find(recipes), strict=True):
        if isinstance(program, Missing):
            found[recipe.name] = program
        else:
            programs[recipe.name] = program
    if programs:
        folder = stack.enter_context(scratch())
        found |= run_all([recipe for recipe in recipes if recipe.name in programs], programs, folder, stack)
    return {name: found[name] for name in names}


def find(recipes: list[Recipe]) -> list[Program | Missing]:
    """Find each server's program, installing what is missing if we may."""
    absent = [recipe for recipe in recipes if recipe.find() is None]
    failure = None
    if absent and may_install():
        failure = install(sorted({package for recipe in absent for package in recipe.packages}))
    return [recipe.find() or Missing(failure or _advice(recipe)) for recipe in recipes]


def run_all(
    recipes: list[Recipe], programs: dict[str, Program], folder: Path, stack: ExitStack
) -> dict[str, Server | Missing]:
    """Prepare all servers at once, start them, and wait until each answers."""
    found: dict[str, Server | Missing] = {}
    privates = [Private(recipe, programs[recipe.name], folder) for recipe in recipes]
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


def hold(lock: Path | None) -> None:
    """Return when the file is unlocked, or without one when standard input closes."""
    if lock is not None:
        with lock.open() as file:
            fcntl.flock(file, fcntl.LOCK_SH)
        return
    kind = os.fstat(0).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISSOCK(kind) or os.isatty(0)):
        while True:  # /dev/null or a file never closes: a signal ends us
            signal.pause()
    while os.read(0, 4096):
        pass


def _advice(recipe: Recipe) -> str:
    packages = " ".join(recipe.packages)
    return f"{recipe.program} is not installed; `apt-get install {packages}`, or set {VARIABLES[recipe.name]}"


def _leave(number: int, frame: FrameType | None) -> NoReturn:
    del number, frame
    raise SystemExit


def _ignore_signals() -> None:
    for each in SIGNALS:
        signal.signal(each, signal.SIG_IGN)


if __name__ == "__main__":
    main(sys.argv[1:])
