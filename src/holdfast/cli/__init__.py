"""Command line interface, `holdfast`."""
