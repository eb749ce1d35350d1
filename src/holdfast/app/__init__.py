"""Application API: declare job types, enqueue jobs and follow them."""
