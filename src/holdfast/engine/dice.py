"""Chance, handed to the policies from outside."""

import random
from collections.abc import Callable

Dice = Callable[[], float]
"""Gives a number in [0, 1)."""


def throw() -> float:
    """The ordinary dice: spreads retries, guards nothing."""
    return random.random()
