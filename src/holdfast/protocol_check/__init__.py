"""Conformance kit of the worker protocol: checks a worker against a private node."""
