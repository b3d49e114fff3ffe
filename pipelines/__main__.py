"""The command line: `python -m pipelines submit | schedule`."""

import importlib
import sys
from collections.abc import Sequence

from localvertex_base.userinput import cli
from pipelines.calls import CallFailed

_DESCRIPTION = "Submit and schedule compiled pipelines on Vertex AI (see docs/cloud.md)."

_COMMANDS = {
    "submit": ("pipelines.commands.submit", "run a compiled pipeline on Vertex AI"),
    "schedule": ("pipelines.commands.schedule", "manage recurring runs from a file"),
}
"""Command -> (module, help text); the module has `add_options(parser)` and `run(options) -> exit code`."""


def _parser(name: str) -> cli.Parser:
    """Return the options of all commands; only the module of the named one is imported."""
    top = cli.Parser("python -m pipelines", description=_DESCRIPTION, epilog=cli.EXIT_CODES)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command, (module, text) in _COMMANDS.items():
        description = f"{text[0].upper()}{text[1:]}."
        added = commands.add_parser(command, help=text, description=description, epilog=cli.EXIT_CODES)
        if command == name:
            importlib.import_module(module).add_options(added)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command.

    Args:
        argv: The arguments without the program's name; None for `sys.argv[1:]`.

    Returns:
        The exit code: 0 success, 1 the run failed, 2 invalid input, 130 stopped.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = _parser(arguments[0] if arguments else "").parse_args(arguments)
    command = importlib.import_module(_COMMANDS[options.command][0])
    return cli.run(lambda: command.run(options), failures=(CallFailed,))


if __name__ == "__main__":
    sys.exit(main())
