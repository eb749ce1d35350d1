"""schemathesis on a real node, all checks, stateful: no answer but those that are described, and no failure of ours.

Some seconds for each database; HOLDFAST_LONG_TESTS=1 asks for longer, `tools/fuzz.py` for as long as you like.
"""

import pytest

from tests.support.fuzz import fuzz
from tests.support.long import LONG


@pytest.mark.timeout(1_200)
@pytest.mark.databases("sqlite", "postgres")
def test_every_answer_is_as_described(database_url, dialect, tmp_path):
    """T17, T22, T34, T41: 0 answers above 499 but 503, 0 that break the schema."""
    examples, seconds = (100, 300) if LONG else (3, 12)
    phases = () if LONG or dialect == "sqlite" else ("--phases", "fuzzing,stateful")
    done = fuzz(database_url, tmp_path, examples=examples, seconds=seconds, options=phases)
    assert done.returncode == 0, done.stdout + done.stderr
    log = (tmp_path / "node.log").read_text()
    assert "failed:" not in log, log
