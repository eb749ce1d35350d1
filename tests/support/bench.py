"""Run `holdfast bench` on private servers: `python -m tests.support.bench [--db NAME]… [arguments of bench]`."""

from __future__ import annotations

import argparse
import asyncio
import secrets
import subprocess
import sys
from typing import TYPE_CHECKING

from tests.support.databases import DATABASES, drop_all
from tests.support.servers import Missing, Server, running
from tests.support.servers.process import scratch

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

DIALECTS = ("postgres", "mysql", "sqlite")


def main(arguments: list[str]) -> int:
    """Run the benchmark on the selected databases, by default on all; return its exit code."""
    parser = argparse.ArgumentParser(prog="./dev bench", add_help=False, allow_abbrev=False)
    parser.add_argument("--db", action="append", choices=DIALECTS)
    own, bench_arguments = parser.parse_known_args(arguments)
    selected = own.db or DIALECTS
    prefix = f"holdfast_bench_{secrets.token_hex(6)}_"
    with running(set(selected) & set(DATABASES)) as servers, scratch() as folder:
        for name, each in servers.items():
            print(f"{name}: {each}", file=sys.stderr)
        try:
            urls = asyncio.run(_create(servers, prefix))
            if "sqlite" in selected:
                urls.append(_sqlite(folder))
            options = [option for url in urls for option in ("--url", url)]
            if any(
                each.split("=")[0] == "--bare-loop" for each in bench_arguments
            ):  # it wipes its database, so it gets its own
                bare = asyncio.run(_create({"postgres": servers["postgres"]}, f"{prefix}bare_"))
                bench_arguments += ["--bare-url", *bare]
            return subprocess.call([sys.executable, "-m", "holdfast", "bench", *options, *bench_arguments])
        finally:
            asyncio.run(_drop(servers, prefix))


async def _create(servers: Mapping[str, Server | Missing], prefix: str) -> list[str]:
    urls = []
    for name, server in servers.items():
        if isinstance(server, Server):
            async with DATABASES[name](server.url, f"{prefix}{name}") as database:
                urls.append(database.url)
    return urls


async def _drop(servers: Mapping[str, Server | Missing], prefix: str) -> None:
    for name, server in servers.items():
        if isinstance(server, Server):
            await drop_all(name, server.url, prefix)


def _sqlite(folder: Path) -> str:
    return f"sqlite:///{folder / 'bench.db'}"


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except KeyboardInterrupt:
        sys.exit(130)
