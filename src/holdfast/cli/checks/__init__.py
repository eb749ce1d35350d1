"""Checks of `holdfast doctor`."""
