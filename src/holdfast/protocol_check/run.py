"""Run scenarios against a worker in turn, on one private node."""

import asyncio
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

from msgspec import Struct

from holdfast.protocol_check import rules
from holdfast.protocol_check.processes import PrivateNode
from holdfast.protocol_check.proxy import RecordingProxy
from holdfast.protocol_check.rules import RuleBroken
from holdfast.protocol_check.scenarios import Scenario
from holdfast.protocol_check.trial import CheckOptions, Trial

SCENARIO_WAITS = 6
"""Longest waits for one fact after which a scenario ends, whatever it waits for."""


class ScenarioResult(Struct, frozen=True):
    """Result of one scenario."""

    scenario: str
    passed: bool
    seconds: float
    rule: str | None = None
    """Rule that the worker broke."""
    requirement: str | None = None
    """Text of this rule."""
    detail: str | None = None
    output: str | None = None
    """Last lines that the worker printed."""


class CheckRunner:
    """Private node, proxy and API key for any number of scenarios."""

    def __init__(self, options: CheckOptions, node: PrivateNode, proxy: RecordingProxy, folder: Path, key: str) -> None:
        self._options = options
        self._node = node
        self._proxy = proxy
        self._folder = folder
        self._key = key

    async def check(self, scenario: Scenario) -> ScenarioResult:
        """Run one scenario."""
        began = time.monotonic()
        folder = self._folder / scenario.id
        folder.mkdir()
        self._proxy.reset()
        trial = Trial(self._options, self._node, self._proxy, folder, self._key)
        broken: RuleBroken | None = None
        max_seconds = SCENARIO_WAITS * self._options.timeout
        try:
            async with asyncio.timeout(max_seconds):
                await scenario.run(trial)
                trial.check()
        except RuleBroken as error:
            broken = error
        except TimeoutError:
            broken = RuleBroken(rules.START, f"the scenario did not end within {max_seconds:g} s")
        finally:
            await self._node.start_if_down()
            await trial.clean_up()
        seconds = round(time.monotonic() - began, 1)
        if broken is None:
            return ScenarioResult(scenario.id, passed=True, seconds=seconds)
        output = "\n".join("\n".join(worker.output.splitlines()[-20:]) for worker in trial.workers)
        return ScenarioResult(
            scenario.id,
            passed=False,
            seconds=seconds,
            rule=broken.rule.id,
            requirement=broken.rule.text,
            detail=broken.detail,
            output=output,
        )


@asynccontextmanager
async def open_runner(options: CheckOptions) -> AsyncIterator[CheckRunner]:
    """Start a node and a proxy for the duration of a block."""
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="holdfast-protocol-")))
        node, proxy = PrivateNode(folder), RecordingProxy()
        stack.push_async_callback(node.aclose)
        stack.push_async_callback(proxy.aclose)
        client = await node.start()
        await proxy.start()
        proxy.node_url = node.url
        key = await client.create_key("worker under test", scopes=["worker"])
        yield CheckRunner(options, node, proxy, folder, key.token)
