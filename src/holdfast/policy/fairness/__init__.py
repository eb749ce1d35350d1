"""Deficit round robin over lanes, and reports on how fair it was."""
