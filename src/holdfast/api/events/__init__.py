"""Live events over server-sent events."""
