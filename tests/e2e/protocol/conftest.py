"""Fixtures of the conformance kit and of the examples: commands of holdfast, and a running node."""

from tests.e2e.cli.conftest import environment, holdfast
from tests.e2e.clients.conftest import service

__all__ = ["environment", "holdfast", "service"]
