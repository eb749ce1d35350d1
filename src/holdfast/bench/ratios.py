"""Figures held against each other in one run: what a machine or a moment does to one, it does to both."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from holdfast.bench import measures
from holdfast.bench.ground import Ground
from holdfast.bench.suite import Watcher
from holdfast.errors import HoldfastError


class Scale(NamedTuple):
    """How large each trial is."""

    jobs: int
    tenants: int
    many_tenants: int
    history: int
    backlog: int
    pin: float


class Trial(NamedTuple):
    """One figure, jobs/s, of one database."""

    database: str
    name: str


class Ratio(msgspec.Struct, frozen=True):
    """The median of one figure over that of another, and what it should be at least."""

    name: str
    value: float
    target: float
    upper: float
    lower: float

    @property
    def met(self) -> bool:
        """Whether the target is reached."""
        return self.value >= self.target


class BareLoop(NamedTuple):
    """A script that drives statements with nothing around them; it wipes its database."""

    script: Path
    url: str

    async def drain(self, jobs: int, tenants: int) -> float:
        """Its jobs/s."""
        process = await asyncio.create_subprocess_exec(
            sys.executable, str(self.script), self.url, "drain", "--jobs", str(jobs), "--tenants", str(tenants),
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE,
        )  # fmt: skip
        said, complaint = await process.communicate()
        if process.returncode != 0:
            last = complaint.decode(errors="replace").strip().splitlines()[-1:] or ["no word"]
            raise HoldfastError(f"--bare-loop: {self.script} ended with code {process.returncode}: {last[0]}")
        return float(msgspec.json.decode(said.strip().splitlines()[-1])["drain_per_s"])


_TARGETS = {"history": 0.9, "pinned": 0.85, "tenants": 0.6, "backlog": 0.9}
_TARGET_BARE = 0.6
_TARGET_OTHERS = 0.5
_WORDS = {
    "history": "with history / plain",
    "pinned": "snapshot pinned / sustained",
    "tenants": "many tenants / plain",
    "backlog": "with backlog / plain",
}

Figures = dict[Trial, list[float]]


async def one_round(grounds: Mapping[str, Ground], scale: Scale, bare: BareLoop | None, watch: Watcher) -> Figures:
    """Each trial once, the databases in turn within a trial."""
    found: Figures = {}
    if bare:
        with watch.step("bare loop", 1) as progress:
            found[Trial("bare loop", "plain")] = [await bare.drain(scale.jobs, scale.tenants)]
            progress(1)
    for name, trial in _TRIALS.items():
        for database, ground in grounds.items():
            await ground.wipe()
            with watch.step(f"{database}: {name}", 1) as progress:
                async with ground.in_service():
                    found[Trial(database, name)] = [await trial(ground, scale)]
                progress(1)
    for ground in grounds.values():
        await ground.wipe()
    return found


def merge(rounds: Sequence[Figures]) -> Figures:
    """All figures of each trial."""
    return {trial: [figure for each in rounds for figure in each.get(trial, [])] for trial in rounds[0]}


def ratios(figures: Figures) -> list[Ratio]:
    """The ratios that these figures allow, by their medians."""
    middle = {trial: median(values) for trial, values in figures.items()}
    found: list[Ratio] = []

    def add(name: str, upper: Trial, lower: Trial, target: float) -> None:
        if upper in middle and lower in middle:
            value = middle[upper] / middle[lower]
            found.append(Ratio(name, value, target, middle[upper], middle[lower]))

    databases = list(dict.fromkeys(trial.database for trial in figures if trial.database != "bare loop"))
    add("postgres / bare loop", Trial("postgres", "plain"), Trial("bare loop", "plain"), _TARGET_BARE)
    for database in databases:
        for name, target in _TARGETS.items():
            plain = "sustained" if name == "pinned" else "plain"
            add(f"{database}: {_WORDS[name]}", Trial(database, name), Trial(database, plain), target)
    for other in databases:
        if other != "postgres":
            add(f"{other} / postgres", Trial(other, "plain"), Trial("postgres", "plain"), _TARGET_OTHERS)
    return found


async def _plain(ground: Ground, scale: Scale) -> float:
    return await _drain(ground, scale.jobs, scale.tenants)


async def _many_tenants(ground: Ground, scale: Scale) -> float:
    return await _drain(ground, scale.jobs, scale.many_tenants)


async def _with_history(ground: Ground, scale: Scale) -> float:
    await ground.add_history(scale.history, measures.quiet)
    return await _drain(ground, scale.jobs, scale.tenants)


async def _with_backlog(ground: Ground, scale: Scale) -> float:
    await ground.add_backlog(scale.backlog, tenants=scale.tenants, progress=measures.quiet)
    return (await measures.drain(ground.engine, scale.jobs, progress=measures.quiet)).per_second


async def _sustained(ground: Ground, scale: Scale) -> float:
    rate = await measures.sustained(ground.engine, scale.pin, tenants=scale.tenants, progress=measures.quiet)
    return rate.per_second


async def _pinned(ground: Ground, scale: Scale) -> float:
    async with ground.pinned():
        return await _sustained(ground, scale)


async def _drain(ground: Ground, jobs: int, tenants: int) -> float:
    await measures.enqueue_many(ground.engine, jobs, tenants=tenants, progress=measures.quiet)
    return (await measures.drain(ground.engine, jobs, progress=measures.quiet)).per_second


_TRIALS: dict[str, Callable[[Ground, Scale], Awaitable[float]]] = {
    "plain": _plain,
    "tenants": _many_tenants,
    "history": _with_history,
    "backlog": _with_backlog,
    "sustained": _sustained,
    "pinned": _pinned,
}
