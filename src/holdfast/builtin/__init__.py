"""Built-in job types: `webhook`, `email` and `demo`."""
