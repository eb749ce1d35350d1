"""Runs jobs: finds their handlers, calls them, reports what came of it."""
