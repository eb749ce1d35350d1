"""Identifiers: of jobs, sorted by age and not to be guessed; of workers, never reused (T42, P15)."""

import os

import pytest
from hypothesis import given
from hypothesis import strategies as st

from holdfast.model.ids import WorkerId, new_job_id, new_worker_id, worker_name

moments = st.integers(0, 2**48 - 1)


@given(moments)
def test_a_job_id_is_a_uuid_of_version_7(at_ms: int) -> None:
    made = new_job_id(at_ms)

    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert made.int >> 80 == at_ms


@given(st.lists(moments, min_size=2, max_size=20, unique=True))
def test_job_ids_sort_by_time_as_numbers_as_bytes_and_as_text(times: list[int]) -> None:
    ids = [new_job_id(at_ms) for at_ms in sorted(times)]

    assert ids == sorted(ids)
    assert [made.bytes for made in ids] == sorted(made.bytes for made in ids)
    assert [str(made) for made in ids] == sorted(str(made) for made in ids)


@pytest.mark.slow
def test_job_ids_of_one_millisecond_are_all_different() -> None:
    assert len({new_job_id(1) for _ in range(100_000)}) == 100_000


def test_seventy_four_bits_of_a_job_id_are_chance() -> None:
    """T42."""
    ones = zeros = 0
    for _ in range(400):
        made = new_job_id(0).int
        ones |= made
        zeros |= ~made
    assert ((ones & zeros) & (2**128 - 1)).bit_count() == 74


def test_a_forked_process_draws_ids_of_its_own() -> None:
    """T42: what was drawn ahead is not drawn twice."""
    new_job_id(1)
    reading, writing = os.pipe()
    if (child := os.fork()) == 0:
        os.write(writing, b"".join(new_job_id(1).bytes for _ in range(300)))
        os._exit(0)
    os.waitpid(child, 0)
    theirs = os.read(reading, 300 * 16)
    os.close(reading)
    os.close(writing)

    assert len(theirs) == 300 * 16
    assert {new_job_id(1).bytes for _ in range(300)}.isdisjoint(theirs[at : at + 16] for at in range(0, 4_800, 16))


def test_a_job_id_by_default_is_of_now() -> None:
    first, second = new_job_id(), new_job_id()

    assert 0 <= (second.int >> 80) - (first.int >> 80) < 60_000


def test_worker_ids_are_positive_fit_a_bigint_and_differ() -> None:
    ids = [new_worker_id() for _ in range(10_000)]

    assert all(0 < made < 2**62 for made in ids)
    assert len(set(ids)) == len(ids)


@given(st.integers(1, 2**62 - 1), st.integers(1, 2**62 - 1))
def test_a_worker_s_name_tells_it_apart(one: int, other: int) -> None:
    assert (worker_name(WorkerId(one)) == worker_name(WorkerId(other))) is (one == other)
    assert len(worker_name(WorkerId(one))) == 18
