"""All tests share the fixtures of `tests/support/plugin.py` and `scene.py`."""

import pytest

pytest.register_assert_rewrite("tests.support")

pytest_plugins = ["tests.support.plugin", "tests.support.fault_env"]
