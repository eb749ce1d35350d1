"""Context of a handler on an in-memory step store."""

# ruff: noqa: PT012 - what is tested is how a block ends

import asyncio
import logging
import math
import threading
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from uuid import UUID

import hypothesis.strategies as st
import msgspec
import pytest
from hypothesis import given

from holdfast.errors import Conflict, Invalid, LeaseLost, NonDeterministic, StepOutcomeUnknown, Unavailable
from holdfast.model.step import Step, StepState
from holdfast.policy.steps import StepDecision, decide_step
from holdfast.worker.context import statement_log
from holdfast.worker.context.context import Context, SyncContext
from holdfast.worker.context.progress import WRITE_INTERVAL_S, ProgressReporter
from tests.unit.policy.strategies import a_job


class FakeSession:
    """Session that counts and numbers the executed statements."""

    def __init__(self, recorded):
        self.recorded = recorded
        self.result = b""
        self.ran = []

    async def execute(self, sql, *args):
        self.ran.append((sql, args))
        return len(self.ran)

    async def fetch(self, sql, *args):
        self.ran.append((sql, args))
        return [(len(self.ran), *args)]

    def record(self, result):
        self.result = result


@dataclass
class FakeRecords:
    """In-memory step store."""

    kept: dict = field(default_factory=dict)
    progress: list = field(default_factory=list)
    holds: bool = True
    away: bool = False
    reads: int = 0
    sessions: list = field(default_factory=list)

    async def steps_of(self, held):
        self.reads += 1
        return list(self.kept.values())

    async def record_step(self, held, step):
        if self.holds and self.kept.get(step.key, step).state is not StepState.DONE:
            self.kept[step.key] = step
        elif self.holds:
            self.kept.setdefault(step.key, step)
        return self.holds

    async def save_progress(self, held, progress):
        if self.away:
            raise Unavailable("the database is away")
        self.progress.append(progress)
        return self.holds

    @asynccontextmanager
    async def session(self, held, key):
        if not self.holds:
            raise LeaseLost("the job was taken away")
        found = self.kept.get(key)
        session = FakeSession(None if found is None else found.result)
        self.sessions.append(session)
        yield session
        if found is None:
            self.kept[key] = Step(key, StepState.DONE, session.result)


@pytest.fixture
def records():
    return FakeRecords()


def attempt(records, number=1, **options):
    return Context(a_job(attempts=number, fence=number), records, **options)


# Steps


@dataclass
class Account:
    name: str
    opened: datetime
    balance: Decimal


async def load(name) -> Account:
    return Account(name, datetime(2026, 3, 29, tzinfo=UTC), Decimal("1.10"))


async def test_a_step_returns_the_annotated_type_in_every_attempt(records):
    first = await attempt(records).step("load", load, "Ada")
    assert first == await load("Ada")
    assert await attempt(records, 2).step("load", load, "another") == first


async def test_a_step_returns_the_same_value_in_its_first_and_later_attempts(records):
    """Values that JSON changes, such as tuples, are changed in the first attempt already."""

    def pair():
        return (1, {2: "two"})

    first = await attempt(records).step("pair", pair)
    assert first == [1, {"2": "two"}]
    assert await attempt(records, 2).step("pair", pair) == first


async def test_a_step_with_a_wrong_return_annotation_returns_its_plain_value(records):
    def count() -> int:
        return "three"

    assert await attempt(records).step("count", count) == "three"
    assert await attempt(records, 2).step("count", count) == "three"


@pytest.mark.parametrize("value", [None, True, 0, -1.5, "", "✓", [1, [2]], {"a": None}])
async def test_any_json_is_recorded(records, value):
    assert await attempt(records).step("k", lambda: value) == value
    assert await attempt(records, 2).step("k", lambda: "not called") == value


async def test_a_step_calls_plain_functions_coroutines_and_functions_that_return_one(records):
    class Caller:
        async def __call__(self, n):
            return n

    async def same(n, *, plus=0):
        return n + plus

    context = attempt(records)
    assert await context.step("coroutine", same, 1, plus=1) == 2
    assert await context.step("object", Caller(), 3) == 3
    assert await context.step("lambda", lambda: same(4)) == 4
    assert await context.step("thread", threading.get_ident) != threading.get_ident()


async def test_a_step_passes_any_keyword_to_its_function(records):
    """`key` and `fn` too, so that a service gets its idempotency key."""

    async def pay(order, *, key, fn=None):
        return [order, key, fn]

    context = attempt(records)
    assert await context.step("charge", pay, 7, key=context.idempotency_key("charge"), fn="f") == [
        7, context.idempotency_key("charge"), "f"
    ]  # fmt: skip


async def test_a_failing_step_records_nothing_and_raises_its_error(records):
    with pytest.raises(ZeroDivisionError):
        await attempt(records).step("divide", lambda: 1 / 0)
    assert records.kept == {}
    with pytest.raises(RuntimeError, match="StopIteration"):
        await attempt(records).step("next", lambda: next(iter(())))


async def test_a_result_that_cannot_be_recorded_is_rejected_with_advice(records):
    with pytest.raises(Invalid, match="return a value that JSON can represent"):
        await attempt(records).step("object", object)
    with pytest.raises(Invalid, match="store it elsewhere"):
        await attempt(records).step("large", lambda: "x" * 2_000_000)
    assert records.kept == {}


class Invoice:
    """Model with the interface of pydantic."""

    def __init__(self, number):
        self.number = number

    def __eq__(self, other):
        return isinstance(other, Invoice) and other.number == self.number

    __hash__ = None

    def model_dump(self, *, mode):
        assert mode == "json"
        return {"number": self.number}

    @classmethod
    def model_validate(cls, value):
        if set(value) != {"number"}:
            raise ValueError("not an invoice")
        return cls(value["number"])


async def test_a_step_records_what_arguments_and_results_may_be(records):
    """T25: models too, alone and inside other values; every attempt gets the same value."""

    async def one() -> Invoice:
        return Invoice(7)

    def many() -> list[Invoice]:
        return [Invoice(1), Invoice(2)]

    def without_annotation():
        return {"newest": Invoice(3)}

    def wrong() -> Invoice:
        return {"other": 1}

    for number in (1, 2):
        context = attempt(records, number)
        assert await context.step("one", one) == Invoice(7)
        assert await context.step("many", many) == [Invoice(1), Invoice(2)]
        assert await context.step("without", without_annotation) == {"newest": {"number": 3}}
        assert await context.step("wrong", wrong) == {"other": 1}


class Connection:
    """Class that JSON cannot represent."""


class Animal:
    """Class that JSON cannot represent, unlike its subclass."""


@dataclass
class Dog(Animal):
    name: str


@pytest.mark.parametrize("at_most_once", [False, True])
async def test_a_step_whose_return_type_cannot_be_recorded_is_not_called(records, at_most_once):
    called = []

    def connect() -> Connection:
        called.append(1)
        return Connection()

    def adopt() -> Animal:
        return Dog("Rex")

    with pytest.raises(Invalid, match=r"'connect' was not run.*returns a Connection") as raised:
        await attempt(records).step("connect", connect, at_most_once=at_most_once)
    assert raised.value.pointer == "/step"
    assert (called, records.kept) == ([], {})
    assert await attempt(records).step("adopt", adopt) == {"name": "Rex"}  # the annotation does not rule this out


async def test_a_key_can_be_used_once_in_an_attempt(records):
    context = attempt(records)
    await context.step("k", lambda: 1)
    with pytest.raises(Invalid, match="'k' was already used"):
        await context.step("k", lambda: 2)
    with pytest.raises(Invalid, match="'k' was already used"):
        async with context.transaction("k"):
            pass


@pytest.mark.parametrize("key", ["", "x" * 256, "a\nb", "nul\x00", 7, None])
async def test_a_step_key_that_cannot_be_stored_is_rejected(records, key):
    with pytest.raises(Invalid, match="not a valid step key"):
        await attempt(records).step(key, lambda: 1)


async def test_the_first_attempt_reads_no_steps_and_a_later_one_reads_them_once(records):
    context = attempt(records)
    await context.step("a", lambda: 1)
    assert records.reads == 0
    context = attempt(records, 2)
    await asyncio.gather(*(context.step(key, lambda: 1) for key in "abcd"))
    assert records.reads == 1


async def test_a_step_at_most_once_is_marked_before_it_is_called(records):
    seen = []
    await attempt(records).step("pay", lambda: seen.append(records.kept["pay"].state), at_most_once=True)
    assert seen == [StepState.STARTED]
    assert records.kept["pay"].state is StepState.DONE


async def test_a_step_at_most_once_that_cannot_be_marked_is_not_called(records):
    records.holds = False
    with pytest.raises(LeaseLost):
        await attempt(records).step("pay", lambda: pytest.fail("called"), at_most_once=True)


@pytest.mark.parametrize(
    "found, at_most_once, expected",
    [
        (None, False, StepDecision.RUN),
        (None, True, StepDecision.RUN),
        (StepState.STARTED, False, StepDecision.RUN),
        (StepState.STARTED, True, StepDecision.UNKNOWN),
        (StepState.DONE, False, StepDecision.REUSE),
        (StepState.DONE, True, StepDecision.REUSE),
    ],
)
def test_the_step_decision_follows_from_the_record(found, at_most_once, expected):
    step = None if found is None else Step("k", found)
    assert decide_step(step, at_most_once=at_most_once) is expected


async def test_the_outcome_of_an_interrupted_at_most_once_step_is_unknown(records):
    records.kept["pay"] = Step("pay", StepState.STARTED)
    with pytest.raises(StepOutcomeUnknown, match="check whether it took effect"):
        await attempt(records, 2).step("pay", lambda: pytest.fail("called"), at_most_once=True)


# Stopping


async def test_a_stopped_handler_cannot_record_anything(records):
    context = attempt(records)
    context.raise_if_cancelled()
    context.cancel("the job was cancelled")
    context.cancel("a later reason")
    assert context.cancelled
    with pytest.raises(LeaseLost, match="the job was cancelled"):
        context.raise_if_cancelled()
    for late in (context.step("k", lambda: 1), context.progress(0.1)):
        with pytest.raises(LeaseLost):
            await late
    with pytest.raises(LeaseLost):
        async with context.transaction():
            pass
    await context.finish()
    assert (records.kept, records.progress, records.sessions) == ({}, [], [])


async def test_a_step_that_ends_after_the_stop_is_recorded_while_the_job_is_held(records):
    """Its effect has happened, so the next attempt should know; the store checks that the job is held."""
    context = attempt(records)

    async def slow():
        context.cancel("timed out")
        return 1

    with pytest.raises(LeaseLost):
        await context.step("slow", slow)
    assert records.kept["slow"].state is StepState.DONE


async def test_the_first_rejected_write_stops_the_handler(records):
    context = attempt(records)
    records.holds = False
    with pytest.raises(LeaseLost, match="no longer holds the job"):
        await context.step("k", lambda: 1)
    assert context.cancelled


def test_time_left_counts_down_to_the_deadline(records):
    assert attempt(records).time_left() is None
    assert 9 < attempt(records, deadline=time.monotonic() + 10).time_left() <= 10
    assert attempt(records, deadline=time.monotonic() - 1).time_left() == 0


def test_idempotency_keys_are_the_same_in_every_attempt(records):
    one, two = attempt(records, 1), attempt(records, 2)
    assert one.idempotency_key("pay") == two.idempotency_key("pay") == f"{one.job.id}:pay"
    assert (one.attempt, two.attempt) == (1, 2)


# Transactions


async def sell(context, *statements, key=None):
    async with context.transaction(key) as tx:
        return [await tx.fetch(statement) for statement in statements], tx.replayed


async def test_a_committed_transaction_is_replayed_from_its_record(records):
    first, replayed = await sell(attempt(records), "SELECT 1", "SELECT  2")
    assert not replayed
    again, replayed = await sell(attempt(records, 2), "SELECT 1", "SELECT 2")
    assert (again, replayed) == (first, True)
    assert records.sessions[1].ran == []


async def test_a_transaction_that_differs_from_the_committed_one_is_rejected(records):
    await sell(attempt(records), "a", "b")
    for statements, how in (("ac", "statement 2"), ("a", "ran 1 statements"), ("abc", "no statement 3")):
        with pytest.raises(NonDeterministic, match=how):
            await sell(attempt(records, 2), *statements)


async def test_steps_and_transactions_are_not_mistaken_for_each_other(records):
    await sell(attempt(records), "a", key="one")
    await attempt(records).step("two", lambda: 1)
    with pytest.raises(NonDeterministic):
        await attempt(records, 2).step("one", lambda: 1)
    with pytest.raises(NonDeterministic):
        await sell(attempt(records, 2), "a", key="two")


async def test_steps_and_progress_are_rejected_inside_a_transaction(records):
    context = attempt(records)
    async with context.transaction():
        for other in (context.step("k", lambda: 1), context.progress(0.5)):
            with pytest.raises(Conflict, match="inside transaction 'transaction-1'"):
                await other
        with pytest.raises(Conflict):
            async with context.transaction():
                pass
    await context.step("k", lambda: 1)
    async with context.transaction():
        pass
    assert set(records.kept) == {"transaction-1", "k", "transaction-2"}


async def test_a_transaction_inside_a_step_is_rejected(records):
    """The next attempt would skip it, and so number later transactions differently."""
    context = attempt(records)
    with pytest.raises(Conflict, match="while step 'outer' runs"):
        await context.step("outer", lambda: sell(context, "a"))
    await sell(context, "a")


async def test_a_failed_transaction_leaves_no_record_and_the_context_usable(records):
    context = attempt(records)
    with pytest.raises(ZeroDivisionError):
        async with context.transaction() as tx:
            await tx.execute("a")
            raise ZeroDivisionError
    assert records.kept == {}
    await context.step("k", lambda: 1)


async def test_results_that_are_too_large_or_of_an_unsupported_type_are_rejected(records):
    records.kept.clear()
    for strange in (object(), "x" * 2_000_000):
        context = attempt(records)
        with pytest.raises(Invalid):
            async with context.transaction() as tx:
                await tx.fetch("SELECT", strange)
        assert records.kept == {}


zones = st.none() | st.integers(-86_399, 86_399).map(lambda offset: timezone(timedelta(seconds=offset)))
plain = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text(st.characters(codec=None, categories=["Cs", "Cc", "L"]))
    | st.binary()
    | st.decimals()
    | st.uuids()
    | st.datetimes(timezones=zones)
    | st.dates()
    | st.times(timezones=zones)
    | st.timedeltas()
)
keys = st.text() | st.integers() | st.binary() | st.booleans() | st.dates()
values = st.recursive(
    plain,
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=20,
)


@given(st.lists(st.tuples(st.text(), values), max_size=5))
def test_statement_results_are_replayed_without_loss(given_results):
    kept = statement_log.StatementLog()
    for sql, result in given_results:
        kept.add(sql, result)
    entries = statement_log.read(kept.to_bytes())
    assert [entry.digest for entry in entries] == [statement_log.digest(sql) for sql, _ in given_results]
    assert repr([entry.result for entry in entries]) == repr([result for _, result in given_results])


@pytest.mark.parametrize("value", [math.nan, math.inf, -0.0, 2**53, 2**64, -(2**200), Decimal("sNaN"), UUID(int=0)])
def test_unusual_values_are_replayed_without_loss(value):
    kept = statement_log.StatementLog()
    kept.add("SELECT", [(value,)])
    (entry,) = statement_log.read(kept.to_bytes())
    assert repr(entry.result) == repr([(value,)])


# Progress


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


async def test_progress_is_written_at_most_once_a_second_and_the_last_value_always():
    saved, clock = [], Clock()

    async def save(progress):
        saved.append(msgspec.json.decode(progress))

    progress = ProgressReporter(save, clock)
    for part in range(100):
        await progress.report(part / 100, str(part))
        clock.now += WRITE_INTERVAL_S / 8
    assert [each["note"] for each in saved] == [str(part) for part in range(0, 100, 8)]
    await progress.flush()
    await progress.flush()
    assert saved[-1] == {"fraction": 0.99, "note": "99"}
    assert len(saved) == 14


@pytest.mark.parametrize("fraction", [-0.1, 1.1, math.nan, math.inf])
async def test_progress_outside_of_0_to_1_is_rejected(records, fraction):
    with pytest.raises(Invalid, match="from 0 to 1"):
        await attempt(records).progress(fraction)


async def test_progress_does_not_fail_a_job_while_the_database_is_unavailable(records):
    context = attempt(records)
    records.away = True
    await context.progress(0.5, "half")
    await context.finish()
    records.away = False
    await context.finish()
    assert records.progress == [b'{"fraction":0.5,"note":"half"}']


async def test_progress_after_a_lost_lease_stops_the_handler_but_not_its_end(records):
    context = attempt(records)
    records.holds = False
    with pytest.raises(LeaseLost):
        await context.progress(0.5)
    await context.finish()
    assert context.cancelled


async def test_a_progress_note_is_shortened_and_sanitized(records):
    await attempt(records).progress(1, "\x00\ud800" + "x" * 10_000)
    (stored,) = records.progress
    assert len(stored) < 1_000
    assert msgspec.json.decode(stored)["fraction"] == 1.0


# Logs


def test_a_log_line_carries_the_job_and_stays_one_line(records, caplog):
    """T26"""
    with caplog.at_level(logging.INFO, "holdfast.job"):
        attempt(records, 3).log("sent\nERROR forged\x1b[2J %s", to="a\r\nb", size=7, what=[1])
    (line,) = caplog.records
    assert line.getMessage() == r"sent\nERROR forged\x1b[2J %s"
    assert (line.job_id, line.attempt, line.job_type) == (str(a_job().id), 3, "send")
    assert line.fields == {"to": r"a\r\nb", "size": 7, "what": "[1]"}


# In threads


async def in_thread(records, work, number=1):
    context = attempt(records, number)
    return await asyncio.to_thread(work, SyncContext(context, asyncio.get_running_loop()))


async def test_a_plain_function_has_an_equivalent_context(records):
    def handler(ctx):
        here = ctx.step("thread", threading.get_ident) == threading.get_ident()
        with ctx.transaction() as tx:
            rows = tx.fetch("SELECT", "a"), tx.execute("UPDATE")
        ctx.progress(0.5, "half")
        return here, rows, ctx.attempt, ctx.time_left(), ctx.cancelled, ctx.idempotency_key("k"), ctx.job.id

    here, rows, *rest = await in_thread(records, handler)
    assert here
    assert rows == ([(1, "a")], 2)
    assert rest == [1, None, False, f"{a_job().id}:k", str(a_job().id)]
    assert records.progress == [b'{"fraction":0.5,"note":"half"}']
    _, again, *_ = await in_thread(records, handler, 2)
    assert again == rows
    assert records.sessions[1].ran == []


async def test_errors_cross_between_thread_and_loop(records):
    def failing(ctx):
        with ctx.transaction() as tx:
            tx.execute("a")
            raise ZeroDivisionError

    def nested(ctx):
        with ctx.transaction():
            ctx.step("k", lambda: 1)

    def stopped(ctx):
        ctx.cancel("enough")
        ctx.raise_if_cancelled()

    for handler, error in ((failing, ZeroDivisionError), (nested, Conflict), (stopped, LeaseLost)):
        with pytest.raises(error):
            await in_thread(records, handler)
    assert records.kept == {}


async def test_a_failing_step_in_a_thread_lets_the_next_transaction_open(records):
    def handler(ctx):
        with pytest.raises(ZeroDivisionError):
            ctx.step("k", lambda: 1 / 0)
        with ctx.transaction() as tx:
            return tx.execute("a")

    assert await in_thread(records, handler) == 1
