"""What happened, as values; sinks turn them into logs, metrics and traces."""
