"""Ratios of measurements taken in pairs, so that the state of the machine affects both."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from holdfast.bench import measures
from holdfast.bench.dataset import BenchDatabase
from holdfast.bench.suite import ProgressDisplay
from holdfast.errors import HoldfastError


class Scale(NamedTuple):
    """Size of the trials."""

    jobs: int
    tenants: int
    many_tenants: int
    history: int
    backlog: int
    pin: float


class Pair(NamedTuple):
    """Two throughputs in jobs/s, measured right after each other."""

    upper: float
    lower: float


class RatioResult(msgspec.Struct, frozen=True):
    """Median ratio of the pairs, and its target."""

    name: str
    value: float
    target: float
    upper: float
    lower: float

    @property
    def met(self) -> bool:
        """True if the ratio reaches its target."""
        return self.value >= self.target


class BareLoop(NamedTuple):
    """Script that runs only the SQL statements; it wipes its database."""

    script: Path
    url: str

    async def drain(self, jobs: int, tenants: int) -> float:
        """Run the script and return its jobs/s."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(self.script), self.url, "drain", "--jobs", str(jobs), "--tenants", str(tenants),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        stdout, stderr = await process.communicate()
        if process.returncode != 0:
            last = stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
            raise HoldfastError(f"--bare-loop: {self.script} exited with code {process.returncode}: {last[0]}")
        return float(msgspec.json.decode(stdout.strip().splitlines()[-1])["drain_per_s"])


_BARE = "postgres / bare loop"
_TARGETS = {_BARE: 0.6, "history": 0.9, "pinned": 0.85, "tenants": 0.6, "backlog": 0.9, "postgres": 0.5}
_DESCRIPTIONS = {
    "tenants": "many tenants / plain",
    "history": "with history / plain",
    "backlog": "with backlog / plain",
    "pinned": "snapshot pinned / sustained",
}


class RatioName(NamedTuple):
    """Database and kind of a ratio; the kinds are the keys of `_TARGETS`."""

    database: str
    kind: str

    def __str__(self) -> str:
        if self.kind in _DESCRIPTIONS:
            return f"{self.database}: {_DESCRIPTIONS[self.kind]}"
        return self.kind if self.kind == _BARE else f"{self.database} / {self.kind}"


async def run_round(
    number: int, databases: Mapping[str, BenchDatabase], scale: Scale, bare: BareLoop | None, reporter: ProgressDisplay
) -> dict[RatioName, Pair]:
    """Measure each pair once; the order within a pair alternates between rounds."""
    found: dict[RatioName, Pair] = {}
    plain = {
        name: await _measure(f"{name}: plain", _plain, database, scale, reporter)
        for name, database in databases.items()
    }
    if bare and "postgres" in plain:
        with reporter.step("bare loop", 1):
            found[RatioName("postgres", _BARE)] = Pair(plain["postgres"], await bare.drain(scale.jobs, scale.tenants))
    if "postgres" in plain:
        others = [name for name in plain if name != "postgres"]
        found |= {RatioName(other, "postgres"): Pair(plain[other], plain["postgres"]) for other in others}
    for dialect, database in databases.items():
        for kind, (trial, base) in _TRIALS.items():
            results = {}
            for each in (base, trial) if number % 2 else (trial, base):
                label = kind if each is trial else f"before {kind}"
                results[each] = await _measure(f"{dialect}: {label}", each, database, scale, reporter)
            found[RatioName(dialect, kind)] = Pair(results[trial], results[base])
        await database.wipe()
    return found


def ratios(rounds: Sequence[Mapping[RatioName, Pair]]) -> list[RatioResult]:
    """Return the median ratios of all rounds."""
    found = []
    for name in rounds[0]:
        pairs = [each[name] for each in rounds]
        value = median(pair.upper / pair.lower for pair in pairs)
        upper, lower = median(pair.upper for pair in pairs), median(pair.lower for pair in pairs)
        found.append(RatioResult(str(name), value, _TARGETS[name.kind], upper, lower))
    return found


async def _measure(
    label: str, trial: "Trial", database: BenchDatabase, scale: Scale, reporter: ProgressDisplay
) -> float:
    """Empty the database and run one trial on it."""
    await database.wipe()
    with reporter.step(label, 1) as progress:
        async with database.in_service():
            result = await trial(database, scale)
        progress(1)
    return result


async def _plain(database: BenchDatabase, scale: Scale) -> float:
    return await _drain(database, scale.jobs, scale.tenants)


async def _many_tenants(database: BenchDatabase, scale: Scale) -> float:
    return await _drain(database, scale.jobs, scale.many_tenants)


async def _with_history(database: BenchDatabase, scale: Scale) -> float:
    await database.add_history(scale.history, measures.no_progress)
    return await _drain(database, scale.jobs, scale.tenants)


async def _with_backlog(database: BenchDatabase, scale: Scale) -> float:
    await database.add_backlog(scale.backlog, tenants=scale.tenants, progress=measures.no_progress)
    return (await measures.drain(database.engine, scale.jobs, progress=measures.no_progress)).per_second


async def _sustained(database: BenchDatabase, scale: Scale) -> float:
    rate = await measures.sustained(database.engine, scale.pin, tenants=scale.tenants, progress=measures.no_progress)
    return rate.per_second


async def _pinned(database: BenchDatabase, scale: Scale) -> float:
    async with database.pinned():
        return await _sustained(database, scale)


async def _drain(database: BenchDatabase, jobs: int, tenants: int) -> float:
    await measures.enqueue_many(database.engine, jobs, tenants=tenants, progress=measures.no_progress)
    return (await measures.drain(database.engine, jobs, progress=measures.no_progress)).per_second


Trial = Callable[[BenchDatabase, Scale], Awaitable[float]]

_TRIALS: dict[str, tuple[Trial, Trial]] = {
    "tenants": (_many_tenants, _plain),
    "history": (_with_history, _plain),
    "backlog": (_with_backlog, _plain),
    "pinned": (_pinned, _sustained),
}
"""Each trial with the one it is compared to."""
