"""Job ids, sorted by age and unpredictable, and worker ids, never reused (T42, P15)."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.ids import WorkerId, ids_with_prefix, new_job_id, new_worker_id, worker_name

milliseconds = st.integers(0, 2**48 - 1)


@given(milliseconds)
def test_a_job_id_is_a_uuid_version_7(at_ms: int) -> None:
    job_id = new_job_id(at_ms)

    assert job_id.version == 7
    assert job_id.variant == "specified in RFC 4122"
    assert job_id.int >> 80 == at_ms


@given(st.lists(milliseconds, min_size=2, max_size=20, unique=True))
def test_job_ids_sort_by_time_as_integers_bytes_and_text(times: list[int]) -> None:
    ids = [new_job_id(at_ms) for at_ms in sorted(times)]

    assert ids == sorted(ids)
    assert [job_id.bytes for job_id in ids] == sorted(job_id.bytes for job_id in ids)
    assert [str(job_id) for job_id in ids] == sorted(str(job_id) for job_id in ids)


@given(milliseconds, milliseconds, st.integers(1, 36))
def test_a_prefix_covers_the_ids_that_begin_with_it(at_ms: int, other_ms: int, length: int) -> None:
    job_id = new_job_id(at_ms)
    prefix = str(job_id)[:length]
    found = ids_with_prefix(prefix)

    for each in (job_id, new_job_id(at_ms), new_job_id(other_ms)):
        assert (found.first <= each <= found.last) == str(each).startswith(prefix)


@pytest.mark.slow
def test_job_ids_of_one_millisecond_are_unique() -> None:
    assert len({new_job_id(1) for _ in range(100_000)}) == 100_000


def test_a_job_id_has_74_random_bits() -> None:
    """T42."""
    ones = zeros = 0
    for _ in range(400):
        job_id = new_job_id(0).int
        ones |= job_id
        zeros |= ~job_id
    assert ((ones & zeros) & (2**128 - 1)).bit_count() == 74


def test_a_forked_process_does_not_reuse_pooled_ids() -> None:
    """T42: random bits drawn before the fork are not used by both processes."""
    new_job_id(1)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, b"".join(new_job_id(1).bytes for _ in range(300)))
        os._exit(0)
    os.waitpid(child, 0)
    child_ids = os.read(reading, 300 * 16)
    os.close(reading)
    os.close(writing)

    assert len(child_ids) == 300 * 16
    assert {new_job_id(1).bytes for _ in range(300)}.isdisjoint(child_ids[at : at + 16] for at in range(0, 4_800, 16))


def test_a_job_id_has_the_current_time_by_default() -> None:
    first, second = new_job_id(), new_job_id()

    assert 0 <= (second.int >> 80) - (first.int >> 80) < 60_000


def test_worker_ids_are_positive_fit_a_bigint_and_are_unique() -> None:
    ids = [new_worker_id() for _ in range(10_000)]

    assert all(0 < job_id < 2**62 for job_id in ids)
    assert len(set(ids)) == len(ids)


@given(st.integers(1, 2**62 - 1), st.integers(1, 2**62 - 1))
def test_worker_names_are_unique(one: int, other: int) -> None:
    assert (worker_name(WorkerId(one)) == worker_name(WorkerId(other))) is (one == other)
    assert len(worker_name(WorkerId(one))) == 18
