"""The objects an application works with: declare job types, enqueue jobs, follow them."""
