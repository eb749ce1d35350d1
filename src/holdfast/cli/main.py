"""`holdfast`: the table of commands, each imported when it is asked for, and the one way they end."""

import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, NoReturn

import click

from holdfast import __version__
from holdfast.cli.exit_codes import INTERRUPTED, OK, code_of, one_line
from holdfast.cli.options import setting_flags

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
    "workers": "holdfast.cli.commands.workers:workers",
    "types": "holdfast.cli.commands.types:types",
    "tenants": "holdfast.cli.commands.tenants:tenants",
    "keys": "holdfast.cli.commands.keys:keys",
    "top": "holdfast.cli.commands.top:top",
    "doctor": "holdfast.cli.commands.doctor:doctor",
    "migrate": "holdfast.cli.commands.migrate:migrate",
    "bench": "holdfast.cli.commands.bench:bench",
    "completion": "holdfast.cli.commands.completion:completion",
}
"""Each command by its name, as `module:function`."""

HELP = {
    "up": "Run everything in one go: API, dashboard, worker, on SQLite by default.",
    "serve": "Run a node of the HTTP service: the API and its live events.",
    "work": "Run a worker: a supervisor with worker processes.",
    "submit": "Submit a job, or many; wait for what comes of it.",
    "jobs": "List, show, follow, cancel, retry and delete jobs.",
    "explain": "Why a job is (not) running, and when it may start.",
    "dead": "Dead letters: list, count by error, replay, purge.",
    "queues": "List, pause and resume queues, set their limits.",
    "workers": "Who runs jobs; take a node out of service.",
    "types": "Which types of jobs there are workers for.",
    "tenants": "Who shares the engine, and what each may have.",
    "keys": "Make, list and revoke keys of the API.",
    "top": "Watch queues, workers, rates and failures.",
    "doctor": "What is wrong, and the command that mends it.",
    "migrate": "Bring the database's schema up to date, or look at it.",
    "bench": "Measure this machine and this database.",
    "completion": "What makes a shell complete commands and flags.",
}
"""One line each for the overview, so that it imports no command."""


class Commands(click.Group):
    """A group whose commands are named in a table and imported when they are used."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the table's order."""
        del ctx
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command, its module imported now."""
        del ctx
        if cmd_name not in COMMANDS:
            return None
        module, _, function = COMMANDS[cmd_name].partition(":")
        command: click.Command = getattr(import_module(module), function)
        _mark_examples(command)
        return command

    def make_context(self, *arguments: Any, **more: Any) -> click.Context:
        """Read the arguments, which prints what `--help` and `--version` ask for; see `invoke`."""
        try:
            return super().make_context(*arguments, **more)
        except BrokenPipeError:
            raise click.exceptions.Exit(_left()) from None

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command; click would take it for a failure that nobody reads any more."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError:
            return _left()

    def shell_complete(self, ctx: click.Context, incomplete: str) -> "list[CompletionItem]":
        """Names of commands from the table; flags as they are."""
        if incomplete.startswith("-"):
            return super().shell_complete(ctx, incomplete)
        from click.shell_completion import CompletionItem

        return [CompletionItem(name, help=HELP[name]) for name in COMMANDS if name.startswith(incomplete)]

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """The overview."""
        del ctx
        with formatter.section("Commands"):
            formatter.write_dl([(name, HELP[name]) for name in COMMANDS])


def _mark_examples(command: click.Command) -> None:
    """Docstrings are raw, and click wants the character before what it must not wrap."""
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
    """Run a command; whatever goes wrong ends as one line on standard error and an exit code."""
    sys.exit(run(arguments))


def _left() -> int:
    """Whoever read our output has seen enough."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return OK


def run(arguments: Sequence[str] | None = None) -> int:
    """As `main`, giving the exit code."""
    try:
        code = cli.main(arguments, prog_name="holdfast", standalone_mode=False)
        sys.stdout.flush()
    except BrokenPipeError:
        return _left()
    except (KeyboardInterrupt, click.Abort):
        return INTERRUPTED
    except click.exceptions.NoArgsIsHelpError as help_:  # a group without a command: which ones there are
        print(help_.format_message(), file=sys.stderr)
        return help_.exit_code
    except Exception as error:  # the last line of every command
        if os.environ.get("HOLDFAST_DEBUG") == "1":
            raise
        print(f"holdfast: {one_line(error)}", file=sys.stderr)
        return code_of(error)
    return code if isinstance(code, int) else OK
