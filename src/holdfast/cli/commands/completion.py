"""`holdfast completion`: what makes a shell complete commands and flags."""

import click

WHERE = {
    "bash": 'eval "$(holdfast completion bash)"    in ~/.bashrc',
    "zsh": 'eval "$(holdfast completion zsh)"    in ~/.zshrc',
    "fish": "holdfast completion fish > ~/.config/fish/completions/holdfast.fish",
}


@click.command()
@click.argument("shell", type=click.Choice(list(WHERE)))
def completion(shell: str) -> None:
    r"""Print the script that makes a shell complete holdfast's commands and flags.

    \b
      eval "$(holdfast completion bash)"
      eval "$(holdfast completion zsh)"
      holdfast completion fish > ~/.config/fish/completions/holdfast.fish
    """
    from click.shell_completion import get_completion_class

    from holdfast.cli.main import cli

    kind = get_completion_class(shell)
    if kind is None:
        raise click.UsageError(f"there is no completion for {shell}")
    # By the template, not by `source()`: that would run the shell to learn its version.
    maker = kind(cli, {}, "holdfast", "_HOLDFAST_COMPLETE")
    print(maker.source_template % maker.source_vars())
