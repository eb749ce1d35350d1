"""`holdfast protocol`: check workers against the worker protocol."""

import shutil
import sys
from typing import TYPE_CHECKING

import click

from holdfast.cli.event_loop import run
from holdfast.cli.exit_codes import FAILED, OK
from holdfast.cli.render import as_json, json_option, table

if TYPE_CHECKING:
    from collections.abc import Sequence

    from holdfast.protocol_check.run import ScenarioResult
    from holdfast.protocol_check.scenarios import Scenario
    from holdfast.protocol_check.trial import CheckOptions


@click.group()
def protocol() -> None:
    r"""Check workers in any language against the worker protocol.

    \b
      holdfast protocol check -- python worker.py
    """


@protocol.command(context_settings={"ignore_unknown_options": True})
@click.option("--only", metavar="NAMES", help="comma-separated scenarios; default: all")
@click.option("--list", "list_", is_flag=True, help="list the scenarios and rules, and exit")
@click.option(
    "--lease",
    type=click.FloatRange(1, 600),
    default=3.0,
    show_default=True,
    metavar="SECONDS",
    help="lease of the worker; more on a slow machine",
)
@click.option(
    "--timeout",
    type=click.FloatRange(1, 600),
    default=30.0,
    show_default=True,
    metavar="SECONDS",
    help="longest wait for one fact, such as a job that finishes",
)
@json_option
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
def check(command: tuple[str, ...], *, only: str | None, list_: bool, lease: float, timeout: float, json: bool) -> int:
    r"""Check COMMAND, which starts a worker, against a private node.

    Tries success, failures, timeouts, cancelled jobs, signals, outages and lost responses. The worker gets
    HOLDFAST_API_URL, HOLDFAST_API_KEY, HOLDFAST_QUEUES, HOLDFAST_SLOTS, HOLDFAST_LEASE_SECONDS and
    HOLDFAST_DRAIN_SECONDS, and must handle the job types that docs/reference/worker-protocol.md describes. Exit code 1
    if it breaks a rule.

    \b
      holdfast protocol check -- python examples/python-http/conformance.py
      holdfast protocol check --only cancel,drain --json -- ./my-worker
    """
    from holdfast.protocol_check.trial import CheckOptions

    chosen = _chosen(only)
    if list_:
        _list(chosen)
        return OK
    if not command:
        raise click.UsageError("give the command that starts your worker: holdfast protocol check -- COMMAND")
    if shutil.which(command[0]) is None:
        raise click.UsageError(f"cannot start {command[0]!r}: no such program; give its path, or put it on the PATH")
    results = run(_check(CheckOptions(command, lease=lease, timeout=timeout), chosen))
    if json:
        print(as_json({"passed": all(result.passed for result in results), "scenarios": results}))
    else:
        _show(results)
    return OK if all(result.passed for result in results) else FAILED


async def _check(options: "CheckOptions", scenarios: "Sequence[Scenario]") -> "list[ScenarioResult]":
    """Run the scenarios; print a line for each on standard error."""
    from holdfast.protocol_check.run import open_runner

    results: list[ScenarioResult] = []
    async with open_runner(options) as runner:
        for scenario in scenarios:
            result = await runner.check(scenario)
            print(f"{scenario.id}: {result.rule or 'pass'}, {result.seconds:g} s", file=sys.stderr)
            results.append(result)
    return results


def _chosen(only: str | None) -> "list[Scenario]":
    from holdfast.protocol_check.scenarios import SCENARIOS

    if only is None:
        return list(SCENARIOS)
    known = {scenario.id: scenario for scenario in SCENARIOS}
    names = [name.strip() for name in only.split(",")]
    for name in names:
        if name not in known:
            raise click.UsageError(f"--only: no such scenario: {name!r}; the scenarios are {', '.join(known)}")
    return [known[name] for name in dict.fromkeys(names)]


def _list(scenarios: "Sequence[Scenario]") -> None:
    from holdfast.protocol_check.rules import RULES

    table(("scenario", "situation"), [(scenario.id, scenario.summary) for scenario in scenarios])
    print()
    table(("rule", "requirement"), [(rule.id, rule.text) for rule in RULES])


def _show(results: "Sequence[ScenarioResult]") -> None:
    rows = [(result.scenario, "pass" if result.passed else result.rule, result.detail or "") for result in results]
    table(("scenario", "result", "detail"), rows)
    for result in results:
        if not result.passed:
            print(f"\n{result.scenario} broke the rule {result.rule}: {result.requirement}\n  {result.detail}")
            for line in (result.output or "").splitlines():
                print(f"  | {line}")
    failed = sum(not result.passed for result in results)
    print(f"\n{len(results) - failed} of {len(results)} scenarios passed")
