"""Coordination of nodes through an optional Redis: wake-ups and early rejections."""
