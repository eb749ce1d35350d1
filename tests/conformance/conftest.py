"""Fixtures of the conformance tests: a store with a manual clock, and forced interleavings."""

import pytest

from tests.support.clock import Console, clock, console, manual_store
from tests.support.interleave import Interleaving

__all__ = ["clock", "console", "interleaving", "manual_store"]


@pytest.fixture
def interleaving(console: Console) -> Interleaving:
    return Interleaving(console)
