"""Storage of declared job types, and worker nodes."""

import msgspec

from holdfast.model.ids import WorkerId
from holdfast.model.job_type import MAX_DESCRIBED_TYPES, MAX_SCHEMA_BYTES, JobType, TypeMark
from holdfast.model.time import Instant, seconds
from holdfast.model.worker import WorkerInfo, WorkerRow
from holdfast.policy import job_types, nodes

NOW = Instant(10_000_000_000)
SEND = JobType("send", schema='{"type":"object"}', queue="mail", max_attempts=3)


def marks_of(updates, seen_at=NOW):
    return [TypeMark(update.type, update.digest, seen_at) for update in updates]


def plan(*types, stored=(), at=NOW):
    return job_types.plan_changes(stored, at, types)


def test_a_stored_type_is_written_again_only_after_the_seen_interval():
    updates, evicted = plan(SEND)
    assert [(update.type, msgspec.json.decode(update.about, type=JobType)) for update in updates] == [("send", SEND)]
    assert evicted == []
    stored = marks_of(updates)
    assert plan(SEND, stored=stored, at=Instant(NOW + job_types.SEEN_INTERVAL - 1)) == ([], [])
    ((name, digest, about),), _ = plan(SEND, stored=stored, at=Instant(NOW + job_types.SEEN_INTERVAL))
    assert (name, digest, about) == ("send", stored[0].digest, None)


def test_a_changed_description_is_written_and_a_bare_name_changes_nothing():
    stored = marks_of(plan(SEND).updates)
    ((_, _, about),), _ = plan(msgspec.structs.replace(SEND, schema=None), stored=stored)
    assert msgspec.json.decode(about, type=JobType).schema is None
    assert plan(JobType("send", described=False), stored=stored) == ([], [])
    named = plan(JobType("send", described=False)).updates
    assert len(plan(SEND, stored=marks_of(named)).updates) == 1, "a description is added to a type stored by name only"


def test_the_number_of_stored_types_is_bounded_and_the_longest_unseen_are_evicted():
    stored = [TypeMark(f"old-{n:04}", "", Instant(n)) for n in range(MAX_DESCRIBED_TYPES)]
    updates, evicted = plan(SEND, JobType("old-0000"), stored=stored)
    assert ({update.type for update in updates}, evicted) == ({"send", "old-0000"}, ["old-0001"])
    many = [JobType(f"new-{n:04}") for n in range(2 * MAX_DESCRIBED_TYPES)]
    updates, evicted = plan(*many, stored=stored)
    assert (len(updates), len(evicted)) == (MAX_DESCRIBED_TYPES, MAX_DESCRIBED_TYPES)


def test_a_schema_that_is_too_large_is_dropped():
    fits = JobType("a", schema='"' + "x" * (MAX_SCHEMA_BYTES - 2) + '"', queues=tuple(f"q{n}" for n in range(99)))
    assert job_types.bounded(fits).schema == fits.schema
    assert len(job_types.bounded(fits).queues) == job_types.MAX_QUEUES
    assert job_types.bounded(msgspec.structs.replace(fits, schema=fits.schema + " ")).schema is None


def test_types_with_live_workers_are_marked_as_seen_once_per_interval():
    stored = [TypeMark("a", "", NOW), TypeMark("b", "", NOW), TypeMark("idle", "", NOW)]
    assert job_types.due_marks(stored, {"a", "b", "unknown"}, Instant(NOW + job_types.SEEN_INTERVAL)) == ["a", "b"]
    assert job_types.due_marks(stored, {"a", "b"}, NOW) == []


def a_row(n, node="", tenant=None, *, draining=False, left=1):
    info = WorkerInfo(WorkerId(n), f"w{n}", "here", n, "1", tenant=tenant, node=node)
    return WorkerRow(info, NOW, Instant(NOW + seconds(left)), NOW, draining=draining)


def test_a_node_consists_of_the_processes_with_its_name_and_tenant():
    """T: a tenant's worker that names its node like another tenant's node does not drain that one."""
    rows = [a_row(1, "n"), a_row(2, "n"), a_row(3, "n", tenant="evil"), a_row(4, "other"), a_row(5), a_row(6)]

    def node(n):
        return [row.info.id for row in nodes.node_of(WorkerId(n), rows)]

    assert [node(n) for n in range(1, 8)] == [[1, 2], [2, 1], [3], [4], [5], [6], []]


def test_only_a_live_worker_that_is_not_draining_can_be_drained():
    assert nodes.worker_actions(a_row(1), NOW) == ["drain"]
    assert nodes.worker_actions(a_row(1, draining=True), NOW) == nodes.worker_actions(a_row(1, left=0), NOW) == []
