"""The context object that handlers receive."""
