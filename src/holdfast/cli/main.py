"""Entry point of `holdfast`: the table of commands, imported lazily, and error handling."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from holdfast import __version__
from holdfast.cli.exit_codes import INTERRUPTED, OK, error_line, exit_code_for
from holdfast.cli.options import setting_flags
from holdfast.cli.process_list import hide_secrets

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

COMMANDS = {
    "up": "holdfast.cli.commands.up:up",
    "serve": "holdfast.cli.commands.serve:serve",
    "work": "holdfast.cli.commands.work:work",
    "submit": "holdfast.cli.commands.submit:submit",
    "jobs": "holdfast.cli.commands.jobs:jobs",
    "explain": "holdfast.cli.commands.explain:explain",
    "dead": "holdfast.cli.commands.dead:dead",
    "queues": "holdfast.cli.commands.queues:queues",
    "limits": "holdfast.cli.commands.limits:limits",
    "pauses": "holdfast.cli.commands.pauses:pauses",
    "webhooks": "holdfast.cli.commands.webhooks:webhooks",
    "stats": "holdfast.cli.commands.stats:stats",
    "workers": "holdfast.cli.commands.workers:workers",
    "types": "holdfast.cli.commands.types:types",
    "tenants": "holdfast.cli.commands.tenants:tenants",
    "keys": "holdfast.cli.commands.keys:keys",
    "top": "holdfast.cli.commands.top:top",
    "doctor": "holdfast.cli.commands.doctor:doctor",
    "migrate": "holdfast.cli.commands.migrate:migrate",
    "import": "holdfast.cli.commands.import_jobs:import_jobs",
    "bench": "holdfast.cli.commands.bench:bench",
    "protocol": "holdfast.cli.commands.protocol:protocol",
    "completion": "holdfast.cli.commands.completion:completion",
}
"""Import path of each command, as `module:function`."""

HELP = {
    "up": "Run everything at once: API, dashboard and worker, on SQLite by default.",
    "serve": "Run a node of the HTTP service: API, dashboard and live events.",
    "work": "Run a worker: a supervisor with worker processes.",
    "submit": "Submit one job or many, and optionally wait for the result.",
    "jobs": "List, show, follow, cancel, retry and delete jobs.",
    "explain": "Explain why a job is (not) running, and when it may start.",
    "dead": "List, group by error, replay and purge dead letters.",
    "queues": "List, pause and resume queues, and set their limits.",
    "limits": "List, set and remove limits of tenants, concurrency keys and queues.",
    "pauses": "List, start and end pauses of job types and tenants.",
    "webhooks": "List failing webhook destinations, and manage signing secrets.",
    "stats": "Show totals, rates and durations of a window.",
    "workers": "List workers, and take a node out of service.",
    "types": "List the job types that workers handle.",
    "tenants": "List tenants, and set their weights and quotas.",
    "keys": "Create, list and revoke API keys, and create tokens.",
    "top": "Watch queues, workers, rates and failures.",
    "doctor": "Find problems, and print the command that fixes each.",
    "migrate": "Migrate the database schema, or show its state.",
    "import": "Import the unfinished jobs of a source system.",
    "bench": "Benchmark this machine and its databases.",
    "protocol": "Check workers in any language against the worker protocol.",
    "completion": "Print the shell completion script.",
}
"""Summaries for `holdfast --help`, kept here so that the overview imports no command."""


class Commands(click.Group):
    """Click group that imports a command when it is used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return the command."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), function)
        _mark_examples(command)
        return command

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Parse the arguments; end quietly if `--help` or `--version` hits a broken pipe."""
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError:
            raise click.exceptions.Exit(_end_quietly()) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; end quietly on a broken pipe, which click would report as a failure."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return _end_quietly()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Complete command names from the table without importing the commands."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(name, help=HELP[name]) for name in COMMANDS if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, HELP[name]) for name in COMMANDS])


def _mark_examples(command: click.Command) -> None:
    r"""Replace `\b` in raw docstrings by the character that keeps click from wrapping."""
    if command.help:
        command.help = command.help.replace(r"\b", "\b")
    for inner in command.commands.values() if isinstance(command, click.Group) else ():
        _mark_examples(inner)


@click.group(cls=Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@setting_flags()
@click.version_option(__version__, message="holdfast %(version)s")
def cli() -> None:
    r"""Background jobs that are not lost, on the database you already run.

    Settings come from flags, then the environment (HOLDFAST_…), then holdfast.toml, then defaults.

    \b
      holdfast up
      holdfast work myapp.jobs:app
      holdfast submit send '{"to": "ada@example.com"}' --queue mail --wait
    """


_mark_examples(cli)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command and exit; errors become one line on standard error and an exit code."""
    hide_secrets()
    sys.exit(run(arguments))


def _end_quietly() -> int:
    """Discard further output after the reader closed the pipe; return the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


def run(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code."""
    try:
        code = cli.main(arguments, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _end_quietly()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as help_:  # a group without a command prints its commands
        print(help_.format_message(), file=sys.stderr)
        return help_.exit_code
    except Exception as error:  # print any error as one line
        if os.environ.get("HOLDFAST_DEBUG") == "1":
            raise
        print(f"holdfast: {error_line(error)}", file=sys.stderr)
        return exit_code_for(error)
    return code if isinstance(code, int) else OK
