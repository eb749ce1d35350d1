"""Plugins that every test uses: databases and servers, `--fast`, and the fixtures of fault tests."""

import pytest

pytest.register_assert_rewrite("tests.support")

pytest_plugins = [
    "tests.support.plugin",
    "tests.support.fast",
    "tests.support.fault_env",
    "tests.support.isolated_tests",
    "tests.support.private_server_fixture",
]
