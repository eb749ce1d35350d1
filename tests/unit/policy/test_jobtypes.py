"""What is written down of the types that workers tell of, and which workers end together."""

import msgspec

from holdfast.model.ids import WorkerId
from holdfast.model.job_type import MAX_DESCRIBED_TYPES, MAX_SCHEMA_BYTES, JobType, TypeMark
from holdfast.model.time import Instant, seconds
from holdfast.model.worker import WorkerInfo, WorkerRow
from holdfast.policy import job_types as policy
from holdfast.policy import nodes

NOW = Instant(10_000_000_000)
SEND = JobType("send", schema='{"type":"object"}', queue="mail", max_attempts=3)


def marked(noted, seen_at=NOW):
    return [TypeMark(each.type, each.digest, seen_at) for each in noted]


def told(*types, known=(), at=NOW):
    return policy.changes(known, at, types)


def test_what_is_known_is_not_written_again_until_it_was_not_seen_for_a_while():
    noted, forgotten = told(SEND)
    assert ([(each.type, msgspec.json.decode(each.about, type=JobType)) for each in noted], forgotten) == (
        [("send", SEND)],
        [],
    )
    known = marked(noted)
    assert told(SEND, known=known, at=Instant(NOW + policy.SEEN_INTERVAL - 1)) == ([], [])
    ((name, digest, about),), _ = told(SEND, known=known, at=Instant(NOW + policy.SEEN_INTERVAL))
    assert (name, digest, about) == ("send", known[0].digest, None)


def test_what_is_told_otherwise_is_written_and_a_mere_name_changes_nothing():
    known = marked(told(SEND).noted)
    ((_, _, about),), _ = told(msgspec.structs.replace(SEND, schema=None), known=known)
    assert msgspec.json.decode(about, type=JobType).schema is None
    assert told(JobType("send", described=False), known=known) == ([], [])
    named = told(JobType("send", described=False)).noted
    assert len(told(SEND, known=marked(named)).noted) == 1, "what was named alone is told by whoever knows more"


def test_never_more_are_remembered_than_may_be_and_the_longest_unseen_make_room():
    known = [TypeMark(f"old-{n:04}", "", Instant(n)) for n in range(MAX_DESCRIBED_TYPES)]
    noted, forgotten = told(SEND, JobType("old-0000"), known=known)
    assert ({each.type for each in noted}, forgotten) == ({"send", "old-0000"}, ["old-0001"])
    many = [JobType(f"new-{n:04}") for n in range(2 * MAX_DESCRIBED_TYPES)]
    noted, forgotten = told(*many, known=known)
    assert (len(noted), len(forgotten)) == (MAX_DESCRIBED_TYPES, MAX_DESCRIBED_TYPES)


def test_a_schema_that_is_too_large_is_none():
    fits = JobType("a", schema='"' + "x" * (MAX_SCHEMA_BYTES - 2) + '"', queues=tuple(f"q{n}" for n in range(99)))
    assert policy.bounded(fits).schema == fits.schema
    assert len(policy.bounded(fits).queues) == policy.MAX_QUEUES
    assert policy.bounded(msgspec.structs.replace(fits, schema=fits.schema + " ")).schema is None


def test_types_that_have_workers_are_seen_now_and_then():
    known = [TypeMark("a", "", NOW), TypeMark("b", "", NOW), TypeMark("idle", "", NOW)]
    assert policy.overdue(known, {"a", "b", "unknown"}, Instant(NOW + policy.SEEN_INTERVAL)) == ["a", "b"]
    assert policy.overdue(known, {"a", "b"}, NOW) == []


def a_row(n, node="", tenant=None, *, draining=False, left=1):
    info = WorkerInfo(WorkerId(n), f"w{n}", "here", n, "1", tenant=tenant, node=node)
    return WorkerRow(info, NOW, Instant(NOW + seconds(left)), NOW, draining=draining)


def test_the_processes_of_a_node_end_together_and_nobody_else():
    """T: a tenant's worker that calls its node as another's is called takes nobody with it."""
    rows = [a_row(1, "n"), a_row(2, "n"), a_row(3, "n", tenant="evil"), a_row(4, "other"), a_row(5), a_row(6)]

    def end(n):
        return [row.info.id for row in nodes.node_of(WorkerId(n), rows)]

    assert [end(n) for n in range(1, 8)] == [[1, 2], [2, 1], [3], [4], [5], [6], []]


def test_who_lives_and_does_not_end_yet_can_be_drained():
    assert nodes.actions(a_row(1), NOW) == ["drain"]
    assert nodes.actions(a_row(1, draining=True), NOW) == nodes.actions(a_row(1, left=0), NOW) == []
