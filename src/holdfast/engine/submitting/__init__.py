"""Submission: check, deduplicate, apply quotas, insert."""
