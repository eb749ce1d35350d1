"""Calls of the source systems, in their own words, on the engine of this node.

`systems` has one table of calls for each system; `calls`, `access` and `shapes` are shared by all of them.
"""
