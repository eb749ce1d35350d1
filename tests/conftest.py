"""Plugins that every test uses: databases and servers, `--fast`, and the fixture `scene`."""

import pytest

pytest.register_assert_rewrite("tests.support")

pytest_plugins = [
    "tests.support.plugin",
    "tests.support.fast",
    "tests.support.fault_env",
    "tests.support.isolated_tests",
]
