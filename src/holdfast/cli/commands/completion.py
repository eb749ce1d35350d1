"""`holdfast completion`: print the shell completion script."""

import click

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
def completion(shell: str) -> None:
    r"""Print the script with which a shell completes the commands and flags of holdfast.

    \b
      eval "$(holdfast completion bash)"
      eval "$(holdfast completion zsh)"
      holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    from click.shell_completion import get_completion_class

    from holdfast.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"no completion for {shell}")
    # Use the template instead of `source()`, which would run the shell to find its version.
    completer = kind(cli, {}, "holdfast", "_HOLDFAST_COMPLETE")
    print(completer.source_template % completer.source_vars())
