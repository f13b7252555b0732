"""``gpuledger collect``: ask schedulers again and again for what they know."""

import typer

app = typer.Typer(help="Ask schedulers for what they know, again and again.", no_args_is_help=True)
