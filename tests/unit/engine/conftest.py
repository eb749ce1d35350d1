"""Fixtures of the engine tests, which run on every store, most of them with a manual clock."""

from tests.support.clock import clock, console, manual_store

__all__ = ["clock", "console", "manual_store"]
