"""Rendering of engine values as wire types, as a caller may see them."""
