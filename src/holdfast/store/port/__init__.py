"""Protocols that a database adapter implements, one module per family."""
