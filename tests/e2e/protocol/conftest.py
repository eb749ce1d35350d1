"""Fixtures of the conformance kit: the commands of the workers that it checks."""

from tests.e2e.cli.conftest import environment, holdfast

__all__ = ["environment", "holdfast"]
