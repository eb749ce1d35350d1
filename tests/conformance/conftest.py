"""What the conformance tests share: the store on a clock of the test's own, and orders that a test can force."""

import pytest

from tests.support.clock import Console, clock, console, manual_store
from tests.support.interleave import Interleaving

__all__ = ["clock", "console", "interleaving", "manual_store"]


@pytest.fixture
def interleaving(console: Console) -> Interleaving:
    return Interleaving(console)
