"""Storage of jobs: one port, and its adapters for three databases."""
