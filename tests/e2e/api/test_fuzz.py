"""schemathesis on a real node, all checks, stateful: no answer but those that are described, and no failure of ours.

The same is asked each time. HOLDFAST_LONG_TESTS=1 asks for longer and for something else each time, `tools/fuzz.py` for
as long as you like.
"""

import random
import re

import pytest

from tests.support.fuzz import fuzz
from tests.support.long import LONG

SEED = random.SystemRandom().randrange(10**9) if LONG else 4
"""schemathesis tells it, so that what was found at random can be found again."""

SHORT = {"sqlite": (1, "examples,coverage"), "postgres": (3, "fuzzing,stateful")}
"""How many examples and which phases: those that ask the same of any database are needed on one."""


@pytest.mark.timeout(1_200)
@pytest.mark.databases("sqlite", "postgres")
def test_every_response_matches_the_description(database_url, dialect, tmp_path):
    """T17, T22, T34, T41: 0 answers above 499 but 503, 0 that break the schema."""
    if LONG:
        done = fuzz(database_url, tmp_path, examples=100, seconds=300, seed=SEED)
    else:
        examples, phases = SHORT[dialect]
        done = fuzz(database_url, tmp_path, examples=examples, seed=SEED, options=("--phases", phases))
    said = done.stdout + done.stderr
    assert done.returncode == 0, said
    selected, tested = (re.findall(rf"{word}: (\d+)", said) for word in ("Selected", "Tested"))
    assert selected == tested != ["0"], said  # every route was asked
    log = (tmp_path / "node.log").read_text()
    assert "failed:" not in log, log
