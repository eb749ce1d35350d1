"""The use cases run on every store, most of them on a clock of the test's own."""

from tests.support.clock import clock, console, manual_store

__all__ = ["clock", "console", "manual_store"]
