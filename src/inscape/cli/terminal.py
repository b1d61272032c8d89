"""What is written to the terminal: names from outside are shown there, and not obeyed."""

import typer

from inscape.escaping import visible


def echo(text: object = "", *, err: bool = False, nl: bool = True) -> None:
    """Print a text with its control characters written out."""
    typer.echo(visible(str(text)), err=err, nl=nl)
