"""Recorded requests and responses of a worker, and the rules that hold for all of them."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from holdfast.protocol_check import rules
from holdfast.protocol_check.rules import RuleBroken

CLAIM = "/v1/leases"
RENEW = "/v1/leases/renew"
SETTLE = "/v1/leases/settle"
LOST = "/v1/leases/lost"
HELD = "/v1/leases/held"

REFUSALS = frozenset({400, 401, 403, 404, 405, 413, 415, 422})
"""Statuses that mean that the worker sent a wrong request."""

IN_FLIGHT_S = 1.0
"""Time for which calls sent before the worker read `lease_lost` may still arrive."""


class ClaimedAttempt(NamedTuple):
    """ClaimedAttempt of a job, by the worker that claimed it."""

    worker: str
    job: str
    fence: int


class RecordedExchange:
    """Request of the worker, and what it received."""

    def __init__(self, method: str, path: str, body: Any, began: float) -> None:
        self.method = method
        self.path = path
        self.body: dict[str, Any] = body if isinstance(body, dict) else {}
        self.began = began
        """Monotonic time at which the request arrived."""
        self.ended: float | None = None
        """Monotonic time of the response; None while it is in progress or if it was lost."""
        self.status: int | None = None
        self.response: dict[str, Any] = {}
        self.injected = False
        """True if the kit made up the response."""

    @property
    def worker(self) -> str | None:
        """Id of the worker that sent it."""
        return self.body.get("worker")

    @property
    def code(self) -> str | None:
        """Code of the problem that the worker received."""
        return self.response.get("code")

    @property
    def is_claim(self) -> bool:
        """True if the worker asked for jobs."""
        return self.path == CLAIM and self.body.get("limit", 1) > 0

    @property
    def renews(self) -> bool:
        """True if the response renewed the lease, or gave the worker a new one."""
        return self.status == 200 and (
            self.path == RENEW or (self.path == CLAIM and self.body.get("lease") is not None)
        )

    @property
    def registered(self) -> str | None:
        """Id of the worker that this exchange registered."""
        is_new = self.path == CLAIM and (self.worker is None or self.body.get("register") is not None)
        return self.response.get("worker") if is_new and self.status == 200 else None

    def learned(self) -> Iterator[ClaimedAttempt]:
        """Yield the attempts that the response told the worker of."""
        if self.status == 200 and self.path in (CLAIM, HELD):
            worker = self.response.get("worker") or self.worker or ""
            for job in self.response.get("jobs", ()):
                yield ClaimedAttempt(worker, job["id"], job["fence"])

    def named(self) -> Iterator[ClaimedAttempt]:
        """Yield the attempts that the request reports on, but not those that it lists as held."""
        jobs = self.body.get("outcomes", ()) if self.path == SETTLE else [self.body] if "fence" in self.body else []
        for job in jobs:
            if isinstance(job, dict) and "id" in job and "fence" in job:
                yield ClaimedAttempt(self.worker or "", str(job["id"]), int(job["fence"]))

    def answered(self) -> Iterator[ClaimedAttempt]:
        """Yield the attempts whose outcome the node has accepted or discarded, not the refused ones."""
        if self.path == SETTLE and self.status == 200:
            refused = {fault["index"] for fault in self.response.get("refused", ())}
            yield from (attempt for index, attempt in enumerate(self.named()) if index not in refused)


def longest_gap(exchanges: Sequence[RecordedExchange], until: float) -> float:
    """Return the longest time without a renewal, from the first one to a time, in seconds."""
    times = sorted(each.began for each in exchanges if each.renews and each.began < until)
    return max((later - earlier for earlier, later in pairwise([*times, until])), default=0.0)


def check(exchanges: Sequence[RecordedExchange]) -> None:
    """Raise `RuleBroken` for the first exchange that breaks a rule."""
    for index, exchange in enumerate(exchanges):
        before = [each for each in exchanges[:index] if each.ended is not None and each.ended <= exchange.began]
        _check_worker(exchange, before)
        _check_attempts(exchange, before)
        if exchange.status in REFUSALS and not exchange.injected:
            raise RuleBroken(
                rules.VALID, f"{exchange.method} {exchange.path}: {exchange.status} {exchange.response.get('detail')}"
            )


def _check_worker(exchange: RecordedExchange, before: Sequence[RecordedExchange]) -> None:
    if exchange.worker is None or exchange.registered is not None or exchange.body.get("register") is not None:
        return
    if all(each.registered != exchange.worker for each in before):
        raise RuleBroken(rules.WORKER_ID, f"{exchange.path}: worker {exchange.worker!r} was not registered")
    if exchange.path in (CLAIM, RENEW):
        for each in before:
            lost = each.worker == exchange.worker and each.code == "lease_lost"
            if lost and exchange.began > (each.ended or 0) + IN_FLIGHT_S:
                raise RuleBroken(
                    rules.WORKER_ID, f"{exchange.path}: worker {exchange.worker!r} is used after 409 lease_lost"
                )


def _check_attempts(exchange: RecordedExchange, before: Sequence[RecordedExchange]) -> None:
    known = {attempt for each in before for attempt in each.learned()}
    answered = {attempt for each in before for attempt in each.answered()}
    for attempt in exchange.named():
        newest = max((each.fence for each in known if each[:2] == attempt[:2]), default=None)
        if newest is None or attempt not in known:
            raise RuleBroken(
                rules.FENCE,
                f"{exchange.path}: fence {attempt.fence} of job {attempt.job}; this worker got {newest or 'none'}",
            )
        if attempt in answered and attempt.fence < newest:
            raise RuleBroken(
                rules.FENCE,
                f"{exchange.path}: fence {attempt.fence} of job {attempt.job} again; its newest claim has {newest}",
            )
        if attempt in answered and exchange.path == SETTLE:
            raise RuleBroken(
                rules.SETTLE_ONCE,
                f"the outcome of job {attempt.job} (fence {attempt.fence}) was sent again after a 200",
            )
