"""The committed wire types of the clients match the API description. No other toolchain is needed."""

import json

import pytest

from tests.support.toolchains import GO_CLIENT, TYPESCRIPT_CLIENT
from tools.client_types import GO, TYPESCRIPT, generate


@pytest.mark.parametrize("path", [GO, TYPESCRIPT], ids=["go", "typescript"])
def test_the_wire_types_match_the_api(path):
    assert path.read_text() == generate()[path], "the API changed: run .venv/bin/python tools/client_types.py"


def test_the_generated_go_types_keep_null_and_absence_apart():
    """A renewal that names no job differs from one that says nothing, and `retryable: false` is sent."""
    text = generate()[GO]
    assert '`json:"held,omitzero"`' in text
    assert "Retryable *bool" in text


def test_the_packages_have_no_dependencies():
    assert "require" not in (GO_CLIENT / "go.mod").read_text()
    package = json.loads((TYPESCRIPT_CLIENT / "package.json").read_text())
    assert "dependencies" not in package


def test_the_lock_file_names_no_registry():
    lock = json.loads((TYPESCRIPT_CLIENT / "package-lock.json").read_text())
    assert not [name for name, package in lock["packages"].items() if "resolved" in package]
