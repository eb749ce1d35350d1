"""`holdfast explain`: explain why a job is (not) running."""

import click

from holdfast.cli.job_ids import resolve_job_id
from holdfast.cli.render import COLOURS, as_json, console, json_option, local, safe
from holdfast.cli.target import run_with_client, target_options
from holdfast.model.explanation import Explanation
from holdfast.sdk.async_client import AsyncClient


@click.command()
@click.argument("job_id", metavar="ID")
@json_option
@target_options
def explain(job_id: str, *, json: bool) -> None:
    r"""Explain why a job is (not) running, and when it may start.

    The reasons come from the rules by which workers claim jobs, the most important first.

    \b
      holdfast explain 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11
      holdfast explain 01981f5e-8c5a-7b6
      holdfast explain 01981f5e-8c5a-7b6e-9a53-2f1d6a1c0e11 --json | jq -r '.reasons[0].code'
    """

    async def fetch(client: AsyncClient) -> Explanation:
        return await client.explain(await resolve_job_id(client, job_id))

    explanation = run_with_client(fetch)
    if json:
        print(as_json(explanation))
        return
    from rich.text import Text

    out = console()
    head = Text(explanation.status.value, style=COLOURS[explanation.status.value])
    head.append(f"  {explanation.id}", style="dim")
    out.print(head)
    for reason in explanation.reasons:
        mark = "✗" if reason.blocks and reason.code not in ("finished", "running") else "•"
        out.print(Text(f"  {mark} {safe(reason.detail)}"))
    estimate = explanation.estimate
    if estimate.at is not None:
        out.print(Text(f"  may start {local(estimate.at)}: {safe(estimate.basis)}", style="dim"))
    elif not explanation.status.terminal:
        out.print(Text(f"  no estimate: {safe(estimate.basis)}", style="dim"))
