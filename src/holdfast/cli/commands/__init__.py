"""Commands of the CLI, a module for each."""
