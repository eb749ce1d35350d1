"""The link to Redis that all parts of a process share: there, or not there and then nobody waits for it.

One answer that is overdue ends the connection for all. A task beside the requests tries to have it back, with longer
and longer pauses, and it is used again only when it answers within the deadline. So a Redis that is down, frozen, slow
or not ours costs the requests under way one deadline, and those that come after it nothing.
"""

import asyncio
import hashlib
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from importlib.resources import files
from typing import Any

from holdfast.coordination.redis_protocol import DEADLINE, Address, Argument, Away, Wire, connect, read_url
from holdfast.telemetry.emit import Emit, log_event
from holdfast.telemetry.events import RedisChanged

_FIRST_PAUSE, _LONGEST_PAUSE = 0.1, 2.0


class Script:
    """A Lua script, known to the server by its digest."""

    def __init__(self, name: str) -> None:
        self.text = files("holdfast.coordination").joinpath(f"{name}.lua").read_text()
        self.digest = hashlib.sha1(self.text.encode(), usedforsecurity=False).hexdigest()


class Link:
    """Asks Redis, within the deadline or not at all. Belongs to one event loop."""

    def __init__(
        self, url: str, scripts: Sequence[Script] = (), *, deadline: float = DEADLINE, emit: Emit = log_event
    ) -> None:
        self.address: Address = read_url(url)
        self.counted: Counter[tuple[str, str]] = Counter()
        """What came of questions: the part that asked, and `hit`, `miss` or `away`."""
        self.losses = 0
        """How often it went, or was not there to begin with."""
        self.changed: list[Callable[[], None]] = []
        """Called when it came or went."""
        self._deadline = deadline
        self._scripts = scripts
        self._emit = emit
        self._wire: Wire | None = None
        self._task: asyncio.Task[None] | None = None
        self._told: bool | None = None
        self._tried = asyncio.Event()

    @property
    def up(self) -> bool:
        """Whether Redis answers, as far as is known."""
        return self._wire is not None

    async def start(self) -> None:
        """Connect if that can be done at once, and go on trying otherwise."""
        self._task = asyncio.create_task(keep(self._connected, self._lost))
        with suppress(TimeoutError):
            await asyncio.wait_for(self._tried.wait(), 4 * self._deadline)

    async def ask(self, *command: Argument) -> Any:
        """What Redis says to a command; raises `Away`, at once while it is known to be away."""
        if self._wire is None:
            raise Away("it is away")
        return await self._wire.ask(*command)

    async def run(self, script: Script, key: str, *arguments: Argument) -> Any:
        """What a script says; raises `Away`."""
        try:
            return await self.ask("EVALSHA", script.digest, 1, key, *arguments)
        except Away as error:
            if str(error).startswith("NOSCRIPT") and self._wire is not None:
                self._wire.close("it has forgotten our scripts")  # they are sent with the next connection
            raise

    def send(self, *command: Argument) -> None:
        """Send a command whose answer nobody needs. While Redis is away it is dropped."""
        if self._wire is not None:
            with suppress(Away):
                self._wire.send(*command)

    async def aclose(self) -> None:
        """Close it; what was sent has been sent."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.gather(self._task, return_exceptions=True)

    async def _connected(self) -> Wire:
        wire = await connect(self.address, deadline=self._deadline)
        for script in self._scripts:
            await wire.ask("SCRIPT", "LOAD", script.text)
        self._wire = wire
        self._tell(up=True, reason="")
        return wire

    def _lost(self, reason: str) -> None:
        self._wire = None
        self._tell(up=False, reason=reason)

    def _tell(self, *, up: bool, reason: str) -> None:
        self._tried.set()
        if up is self._told:
            return
        self.losses += not up
        self._told = up
        self._emit(RedisChanged(up, reason))
        for each in self.changed:
            each()


async def keep(connected: Callable[[], Awaitable[Wire]], lost: Callable[[str], None]) -> None:
    """Have a connection, again and again, until this is cancelled."""
    pause = _FIRST_PAUSE
    loop = asyncio.get_running_loop()
    while True:
        wire: Wire | None = None
        began = loop.time()
        try:
            wire = await connected()
            reason = await asyncio.shield(wire.lost)
        except Away as error:
            reason = str(error)
        finally:
            if wire is not None:
                wire.close("this process ends")
        lost(reason)
        # One that is lost as soon as it is had is tried for ever more rarely: each try may cost requests a deadline.
        pause = _FIRST_PAUSE if loop.time() - began > 10 * _LONGEST_PAUSE else min(2 * pause, _LONGEST_PAUSE)
        await asyncio.sleep(pause)
