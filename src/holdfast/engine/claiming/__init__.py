"""Claims: choose lanes, reserve limits, take jobs under a lease."""
