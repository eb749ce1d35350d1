"""Use cases on existing jobs: settle, act, query, explain, reap."""
