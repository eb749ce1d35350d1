"""Pure decisions: no clock, no randomness, no I/O; callers supply time and random numbers."""
