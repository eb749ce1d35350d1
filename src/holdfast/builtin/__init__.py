"""The job types in the box."""
