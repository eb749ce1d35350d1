"""Handlers: registration, signatures, JSON Schemas and results."""
