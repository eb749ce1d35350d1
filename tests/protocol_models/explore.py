"""Model checker: explores every reachable state of a small model breadth first, so counterexamples are shortest."""

from collections import deque
from collections.abc import Callable, Hashable, Iterable
from typing import Generic, NamedTuple, TypeVar

S = TypeVar("S", bound=Hashable)


class Exploration(NamedTuple, Generic[S]):
    """Result of an exploration, which stops at the first fault."""

    states: int
    transitions: int
    fault: str
    """Violated property; empty if none can be violated."""
    trace: list[str]
    """Shortest sequence of actions that leads to the fault."""
    stuck: list[S]
    """States from which no final state is reachable; computed only if there is no fault."""


def explore(
    start: S,
    actions: Callable[[S], Iterable[tuple[str, S]]],
    *,
    fault_in: Callable[[S], str],
    is_final: Callable[[S], bool],
) -> Exploration[S]:
    """Follow every action from every state."""
    predecessors: dict[S, tuple[str, S] | None] = {start: None}
    sources: dict[S, list[S]] = {}
    queue = deque([start])
    transitions = 0
    while queue:
        state = queue.popleft()
        if fault := fault_in(state):
            return Exploration(len(predecessors), transitions, fault, _trace(state, predecessors), [])
        for name, after in actions(state):
            transitions += 1
            sources.setdefault(after, []).append(state)
            if after not in predecessors:
                predecessors[after] = (name, state)
                queue.append(after)
    return Exploration(len(predecessors), transitions, "", [], _stuck(predecessors, sources, is_final))


def _trace(state: S, predecessors: dict[S, tuple[str, S] | None]) -> list[str]:
    names = []
    while (step := predecessors[state]) is not None:
        name, state = step
        names.append(name)
    return names[::-1]


def _stuck(states: Iterable[S], sources: dict[S, list[S]], is_final: Callable[[S], bool]) -> list[S]:
    can_finish = {state for state in states if is_final(state)}
    queue = list(can_finish)
    while queue:
        for before in sources.get(queue.pop(), ()):
            if before not in can_finish:
                can_finish.add(before)
                queue.append(before)
    return [state for state in states if state not in can_finish]
