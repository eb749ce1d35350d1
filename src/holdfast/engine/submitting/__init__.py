"""Submission: validate, check quotas, deduplicate, insert by group commit, acknowledge."""
