"""Hypothesis settings of the unit tests: no deadline for an example, because the machine may be busy."""

import pytest
from hypothesis import settings

from tests.support.fast import is_fast

FAST_EXAMPLES = 8


def pytest_configure(config: pytest.Config) -> None:
    current = settings.get_profile(settings.get_current_profile_name())
    examples = FAST_EXAMPLES if is_fast(config) else current.max_examples
    settings.register_profile("holdfast", current, deadline=None, max_examples=examples)
    settings.load_profile("holdfast")
