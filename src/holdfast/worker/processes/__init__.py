"""The process tree of a worker node."""
