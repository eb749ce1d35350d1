"""Commands accept the first digits of a job id if they are unambiguous."""

import pytest

from holdfast.model.ids import new_job_id
from tests.support.builders import a_job, put
from tests.support.service_thread import FAILS, WORKS

AT_MS = 0x01981F5E8C5A
PREFIX = "01981f5e"


def insert(node, *at_ms, queue="mail"):
    """Insert jobs that were submitted at these milliseconds; return their ids."""
    jobs = [a_job(queue, id=new_job_id(ms)) for ms in at_ms]
    node.do(lambda engine: put(engine.store, *jobs))
    return [str(job.id) for job in jobs]


def test_a_unique_prefix_stands_for_a_live_finished_or_dead_job(ask, ask_json, node):
    (done,) = insert(node, AT_MS, queue="done")
    node.settle(WORKS, queue="done")
    (dead,) = insert(node, AT_MS + (1 << 16), queue="dead")
    node.settle(FAILS, queue="dead")
    (live,) = insert(node, AT_MS + (2 << 16))
    for job_id, status in ((live, "ready"), (done, "succeeded"), (dead, "dead")):
        for prefix in (job_id[:8], job_id[:9], job_id[:13].upper(), job_id.replace("-", "")[:20], job_id[:35]):
            shown = ask_json("jobs", "show", prefix)
            assert (shown["id"], shown["status"]) == (job_id, status)
        assert ask_json("explain", job_id[:8])["id"] == job_id

    assert '"sent": 1' in ask("jobs", "tail", done[:8]).out
    assert ask("jobs", "cancel", live[:8], live).out == f"cancelled {live}\n"
    assert ask_json("jobs", "retry", live[:8]) == {"done": [live], "refused": []}
    assert ask("jobs", "delete", live[:8], "--yes").out == f"deleted {live}\n"
    assert ask_json("dead", "replay", dead[:8], dead, "--dry-run")["matched"] == 1
    assert ask_json("dead", "replay", done[:8], code=1)["missing"] == 1
    assert ask("dead", "purge", dead[:8], "--yes").out == "1 deleted\n"


@pytest.mark.databases("sqlite")
def test_an_ambiguous_prefix_is_refused_with_up_to_five_candidates(ask, ask_json, node):
    """Jobs of one millisecond share 12 digits."""
    ids = sorted(insert(node, AT_MS, AT_MS), reverse=True)
    for command in (["jobs", "show"], ["explain"], ["jobs", "tail"], ["jobs", "cancel"], ["dead", "purge", "--yes"]):
        ended = ask(*command, ids[0][:13])
        assert (ended.code, ended.out) == (2, "")
        assert ended.complaint == f"{ids[0][:13]!r} is ambiguous: it could be {ids[0]}, {ids[1]}; give more digits"
    assert ask("jobs", "show", ids[0]).code == 0

    insert(node, *[AT_MS + number for number in range(1, 5)])
    complaint = ask("jobs", "show", PREFIX).complaint
    assert complaint.count("01981f5e-") == 5
    assert complaint.endswith(" and others; give more digits")
    assert ask_json("jobs", "list", "--status", "cancelled")["items"] == []


@pytest.mark.databases("sqlite")
def test_an_unknown_prefix_is_not_found_and_a_short_one_is_refused(ask, node):
    insert(node, AT_MS)
    for command in (["jobs", "show"], ["explain"], ["jobs", "cancel"], ["dead", "replay"]):
        unknown = ask(*command, "01981f5f")
        assert (unknown.code, unknown.complaint) == (4, "there is no job whose id begins with '01981f5f'")
        short = ask(*command, "01981f5")
        assert (short.code, "give at least its first 8 digits" in short.complaint) == (2, True)
    assert ask("jobs", "show", "nothing-like-it").code == 4
    assert ask("jobs", "show", "0" * 33).code == 4


@pytest.mark.databases("sqlite")
def test_a_prefix_finds_only_jobs_of_the_tenant_of_the_key(cli, ask_json, node):
    ids = insert(node, AT_MS)
    key = ask_json("keys", "create", "other", "--tenant", "globex", "--scope", "read")["token"]
    ended = cli("jobs", "show", ids[0][:8], HOLDFAST_API_URL=node.url, HOLDFAST_API_KEY=key)
    assert (ended.code, ended.complaint) == (4, f"there is no job whose id begins with {ids[0][:8]!r}")
