"""The HTTP service: one table of routes, each three lines above the engine."""
