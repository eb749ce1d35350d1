"""Every state that a small model can reach, breadth first: so the first fault found has the shortest story."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Explored(NamedTuple, Generic[S]):
    """What became of an exploration. It ends at the first fault."""

    states: int
    transitions: int
    fault: str
    """What went wrong; empty if nothing can."""
    story: list[str]
    """The shortest way to the fault."""
    stuck: list[S]
    """States from which no end can be reached any more; looked for only where nothing is wrong."""


def explore(
    start: S,
    moves: Callable[[S], Iterable[tuple[str, S]]],
    *,
    fault_in: Callable[[S], str],
    ended: Callable[[S], bool],
) -> Explored[S]:
    """Follow every move from every state, in every order."""
    came_from: dict[S, tuple[str, S] | None] = {start: None}
    leads_back: dict[S, list[S]] = {}
    queue = deque([start])
    transitions = 0
    while queue:
        state = queue.popleft()
        if fault := fault_in(state):
            return Explored(len(came_from), transitions, fault, _story(state, came_from), [])
        for name, after in moves(state):
            transitions += 1
            leads_back.setdefault(after, []).append(state)
            if after not in came_from:
                came_from[after] = (name, state)
                queue.append(after)
    return Explored(len(came_from), transitions, "", [], _stuck(came_from, leads_back, ended))


def _story(state: S, came_from: dict[S, tuple[str, S] | None]) -> list[str]:
    names = []
    while (step := came_from[state]) is not None:
        name, state = step
        names.append(name)
    return names[::-1]


def _stuck(states: Iterable[S], leads_back: dict[S, list[S]], ended: Callable[[S], bool]) -> list[S]:
    hopeful = {state for state in states if ended(state)}
    look = list(hopeful)
    while look:
        for before in leads_back.get(look.pop(), ()):
            if before not in hopeful:
                hopeful.add(before)
                look.append(before)
    return [state for state in states if state not in hopeful]
