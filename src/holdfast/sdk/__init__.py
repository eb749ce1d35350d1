"""The other side of the HTTP service: what a client sends, how it reads answers, and a worker's port over it."""
