"""Measures the engine by its own public way, all guarantees on."""
