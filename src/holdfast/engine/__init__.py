"""Use cases: read rows, let a policy decide, apply the decision."""
