"""Write the pages of docs/reference that are made from code: `.venv/bin/python tools/docs.py`."""

from __future__ import annotations

import inspect
import re
import sys
import textwrap
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

import click

from holdfast.cli.exit_codes import MEANINGS
from holdfast.cli.main import COMMANDS, HELP, cli
from holdfast.config import KNOWN, Settings
from holdfast.model.state import MOVES, TERMINAL, Status
from holdfast.telemetry.metric_names import KNOWN as METRICS
from holdfast.telemetry.metrics import MOST_NAMES, OTHERS

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from tools import docs_http, docs_python

if TYPE_CHECKING:
    from collections.abc import Iterator

FOLDER = Path(__file__).resolve().parent.parent / "docs" / "reference"
_EXAMPLES = re.compile(r"(?:\\b|\x08)\n((?:.+\n?)+)")
"""What click keeps as it is written."""

_EVERYWHERE = tuple(f"| `{flag}" for flag in ("--database-url", "--config", "--api,", "--key,", "--url,"))
"""Flags that are told once for all commands."""

MADE = "<!-- Made from the code by tools/docs.py: change it there, then run .venv/bin/python tools/docs.py -->"

STATES = {
    Status.BLOCKED: "waits for other jobs of its workflow",
    Status.SCHEDULED: "due later: it was submitted so, or its handler asked for it (snooze)",
    Status.READY: "may be claimed by any worker that knows its type",
    Status.RUNNING: "held by one worker, under its lease",
    Status.RETRYING: "an attempt failed; due again after its backoff",
    Status.SUCCEEDED: "its handler returned; the result is kept with it",
    Status.DEAD: "all attempts spent, or not worth another; kept as a dead letter, can be replayed",
    Status.CANCELLED: "will not run (again): by a person, its handler, a parent that died, or a deadline that passed",
}
"""Each state in words."""


def pages() -> dict[str, str]:
    """Each page by its file's name."""
    return {
        "cli.md": _cli(),
        "http.md": _page("HTTP", *docs_http.parts()),
        "metrics.md": _metrics(),
        "python.md": _page("Python reference", *docs_python.parts()),
        "settings.md": _settings(),
        "states.md": _states(),
    }


def _metrics() -> str:
    whole, own = [], []
    for each in METRICS:
        labels = ", ".join(f"`{label}`" for label in each.labels) or "–"
        rows = own if each.name.startswith("holdfast_node_") else whole
        rows.append(_row(f"`{each.name}`", each.kind, labels, each.help))
    head = [_row("metric", "kind", "labels", "what"), _row(*["---"] * 4)]
    return _page(
        "Metrics",
        """\
`GET /metrics` on any node, in the text format of Prometheus. It needs a key with the scope `admin`, and no label has
the name of a tenant:

```yaml
scrape_configs:
  - job_name: holdfast
    authorization: {credentials_file: /etc/prometheus/holdfast.key}
    static_configs: [{targets: ["127.0.0.1:8080"]}]
```

What the database tells is asked for once a second at the most, however many nodes of Prometheus ask. Where there are
very many jobs, counts of unfinished ones are some seconds old.""",
        "## Of the installation",
        """\
The same whichever node is asked: look at one node's, or take `max`, never `sum`. Counters only grow, also when jobs are
removed. The bounds of histograms are those of the buckets that are kept, so no count is guessed; their sums are off by
a tenth at the most.""",
        "\n".join([*head, *whole]),
        "## Of a node",
        "Each node counts its own, from when it started. Add them up with `sum`.",
        "\n".join([*head, *own]),
        f"""\
Queues and types are told apart up to {MOST_NAMES} of each, those with the most jobs; the rest is together under
`{OTHERS}`, as are requests to paths that there are not. Beside these there are `holdfast_node_process_…`: memory,
processor time and open files, under the names that Prometheus gives them everywhere.""",
    )


def _settings() -> str:
    rows = [_row("`holdfast.toml`", "variable", "what", "takes", "default"), _row(*["---"] * 5)]
    defaults = Settings()
    for each in KNOWN:
        names = ", ".join(f"`{name}`" for name in (each.variable, *each.bare))
        takes = each.reader.takes.replace("|", "\\|")
        rows.append(_row(f"`{each.key}`", names, each.help, takes, _default(getattr(defaults, each.field), each.key)))
    return _page(
        "Settings",
        """\
A setting is taken from the first place that has it: a **flag** of the command, the **environment**, the file
**`holdfast.toml`**, its **default**. The flag is the key with dashes (`lease_seconds` is `--lease-seconds`), where a
command takes it. Of several variables the one with the prefix wins; an empty one counts as not set.

The file is `holdfast.toml` in the folder the command runs in, or the one that `--config` or `HOLDFAST_CONFIG` names.
It is flat: `port = 8080`, one line for each setting. A key that is not in this table is refused, with the nearest one
that is.

Lengths of time are numbers in the unit that the name tells, or texts with a unit: `lease_seconds = 15` and
`lease_seconds = "15s"` are the same.""",
        "\n".join(rows),
        """\
Leases are renewed every third of `lease_seconds`, so that two renewals may fail before one runs out. `backoff_max_ms`
may not be less than `backoff_base_ms`. Passwords and keys are never shown, in messages or logs.

`HOLDFAST_DEBUG=1` shows the traceback of an error that a command would tell in one line.""",
    )


def _states() -> str:
    rows = [_row("state", "means", "can become"), _row(*["---"] * 3)]
    for status in Status:
        name = f"**`{status}`**" if status in TERMINAL else f"`{status}`"
        rows.append(_row(name, STATES[status], ", ".join(f"`{to}`" for to in Status if to in MOVES[status]) or "–"))
    arrows = [f"    {was} --> {to}" for was in Status for to in Status if to in MOVES[was]]
    begins = [f"    [*] --> {status}" for status in (Status.BLOCKED, Status.SCHEDULED, Status.READY)]
    diagram = "\n".join(["```mermaid", "stateDiagram-v2", *begins, *arrows, "```"])
    return _page(
        "States of a job",
        "Every job is in one of these states. In **bold** those in which it stays, unless it is replayed.",
        "\n".join(rows),
        """\
An attempt is counted when a job is claimed. Snoozing, draining and handing back spend none. A replay of a dead or
cancelled job makes it `ready` again as a new generation: its attempts are counted anew, its old errors kept.

Nothing else changes a job's state, and each move is applied once: it names the state, the fence and the holder that it
was decided on, and comes to nothing if one of them has changed.""",
        diagram,
    )


def _cli() -> str:
    parts: list[str] = []
    context = click.Context(cli, info_name="holdfast")
    for name, place in COMMANDS.items():
        module, _, function = place.partition(":")
        parts += _command(getattr(import_module(module), function), context, name, HELP[name])
    codes = [_row("exit code", "means"), _row("---", "---")]
    codes += [_row(f"`{code}`", word) for code, word in MEANINGS.items()]
    return _page(
        "Command line",
        """\
`holdfast COMMAND --help` shows the same. Commands that show something take `--json` for programs. Each takes
`--database-url` and `--config`, and reads the [settings](settings.md).

Commands that look at jobs or change them talk to a service (`--api` and `--key`, or `HOLDFAST_API_URL` and
`HOLDFAST_API_KEY`) or to a database directly (`--url`, or `HOLDFAST_DATABASE_URL`), with the same answers. A flag wins
over a variable, and of two variables the database. Where nothing is named, it is the `holdfast up` that runs in this
folder, which left its address and key in `.holdfast/`; if it does not run, its database.

Tables fit the terminal: what there is no room for is left out, and `--json` has it all. There are no colours when the
output is piped, or with `NO_COLOR`. What takes longer shows a bar on standard error.""",
        *parts,
        "## How commands end",
        """\
What goes wrong is told in one line on standard error, `holdfast: …`, which names the flag, variable or key and what to
do. The codes are stable:""",
        "\n".join(codes),
    )


def _command(command: click.Command, parent: click.Context, name: str, summary: str) -> Iterator[str]:
    context = click.Context(command, info_name=name, parent=parent)
    yield f"{'##' if parent.parent is None else '###'} {context.command_path}"
    yield f"`{context.command_path} {' '.join(command.collect_usage_pieces(context))}`"
    yield _EXAMPLES.sub(_as_code, inspect.cleandoc(command.help or summary)).rstrip()
    options = [_option(each, context) for each in command.params]
    shown = [row for row in options if row and not row.startswith(_EVERYWHERE)]
    if shown:
        yield "\n".join([_row("option", "what"), _row("---", "---"), *shown])
    if isinstance(command, click.Group):
        for sub, inner in command.commands.items():
            yield from _command(inner, context, sub, inner.help or "")


def _as_code(example: re.Match[str]) -> str:
    return f"```sh\n{textwrap.dedent(example[1]).rstrip()}\n```\n"


def _option(option: click.Parameter, context: click.Context) -> str | None:
    record = option.get_help_record(context) if isinstance(option, click.Option) else None
    if record is None:
        return None
    names = record[0].replace("INTEGER RANGE", "N").replace("INTEGER", "N").replace("|", "\\|")
    return _row(f"`{names}`", record[1].replace("|", "\\|"))


def _default(value: object, key: str) -> str:
    if value in (None, "", ()):
        return "–"
    if isinstance(value, tuple):
        return f"`{', '.join(map(str, value))}`"
    for suffix, unit in (("_ms", 1_000), ("_seconds", 1_000_000), ("_days", 86_400_000_000)):
        if key.endswith(suffix) and isinstance(value, int):
            return f"`{value / unit:g}`"
    return f"`{value}`"


def _row(*cells: str) -> str:
    return f"| {' | '.join(cells)} |"


def _page(title: str, *parts: str) -> str:
    return "\n\n".join([f"# {title}", MADE, *parts]) + "\n"


if __name__ == "__main__":
    FOLDER.mkdir(parents=True, exist_ok=True)
    for file, text in pages().items():
        (FOLDER / file).write_text(text)
        print(f"wrote docs/reference/{file}")
