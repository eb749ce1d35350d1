"""HTTP service: a table of routes, each a thin layer over the engine."""
