"""The `webhook` job type."""
