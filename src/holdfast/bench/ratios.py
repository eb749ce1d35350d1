"""Figures held against each other in one run: what a machine or a moment does to one, it does to both."""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import msgspec

from holdfast.bench import measures
from holdfast.bench.dataset import Ground
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


class Pair(NamedTuple):
    """Two figures, jobs/s, measured one right after the other."""

    upper: float
    lower: float


class Ratio(msgspec.Struct, frozen=True):
    """The median of one figure over another, pair by pair, and what it should be at least."""

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


_BARE = "postgres / bare loop"
_TARGETS = {_BARE: 0.6, "history": 0.9, "pinned": 0.85, "tenants": 0.6, "backlog": 0.9, "postgres": 0.5}
_WORDS = {
    "tenants": "many tenants / plain",
    "history": "with history / plain",
    "backlog": "with backlog / plain",
    "pinned": "snapshot pinned / sustained",
}


class Name(NamedTuple):
    """Which ratio: of a database, by `_TARGETS`."""

    database: str
    kind: str

    def __str__(self) -> str:
        if self.kind in _WORDS:
            return f"{self.database}: {_WORDS[self.kind]}"
        return self.kind if self.kind == _BARE else f"{self.database} / {self.kind}"


async def one_round(
    number: int, grounds: Mapping[str, Ground], scale: Scale, bare: BareLoop | None, watch: Watcher
) -> dict[Name, Pair]:
    """Each pair once. Which of a pair comes first alternates from round to round."""
    found: dict[Name, Pair] = {}
    plain = {name: await _alone(f"{name}: plain", _plain, ground, scale, watch) for name, ground in grounds.items()}
    if bare and "postgres" in plain:
        with watch.step("bare loop", 1):
            found[Name("postgres", _BARE)] = Pair(plain["postgres"], await bare.drain(scale.jobs, scale.tenants))
    if "postgres" in plain:
        others = [name for name in plain if name != "postgres"]
        found |= {Name(other, "postgres"): Pair(plain[other], plain["postgres"]) for other in others}
    for database, ground in grounds.items():
        for kind, (trial, base) in _TRIALS.items():
            figures = {}
            for each in (base, trial) if number % 2 else (trial, base):
                said = kind if each is trial else f"before {kind}"
                figures[each] = await _alone(f"{database}: {said}", each, ground, scale, watch)
            found[Name(database, kind)] = Pair(figures[trial], figures[base])
        await ground.wipe()
    return found


def ratios(rounds: Sequence[Mapping[Name, Pair]]) -> list[Ratio]:
    """The ratios of all rounds, by their medians."""
    found = []
    for name in rounds[0]:
        pairs = [each[name] for each in rounds]
        value = median(pair.upper / pair.lower for pair in pairs)
        upper, lower = median(pair.upper for pair in pairs), median(pair.lower for pair in pairs)
        found.append(Ratio(str(name), value, _TARGETS[name.kind], upper, lower))
    return found


async def _alone(said: str, trial: "Trial", ground: Ground, scale: Scale, watch: Watcher) -> float:
    """One figure, on a database that was emptied before."""
    await ground.wipe()
    with watch.step(said, 1) as progress:
        async with ground.in_service():
            figure = await trial(ground, scale)
        progress(1)
    return figure


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


Trial = Callable[[Ground, Scale], Awaitable[float]]

_TRIALS: dict[str, tuple[Trial, Trial]] = {
    "tenants": (_many_tenants, _plain),
    "history": (_with_history, _plain),
    "backlog": (_with_backlog, _plain),
    "pinned": (_pinned, _sustained),
}
"""Each with what it is held against."""
