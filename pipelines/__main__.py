"""The command line: `python -m pipelines submit | schedule`."""

import sys
from collections.abc import Sequence

from localvertex._base.userinput import cli
from pipelines.calls import CallFailed
from pipelines.commands import schedule, submit

_DESCRIPTION = "Submit and schedule compiled pipelines on Vertex AI (see docs/cloud.md)."

_COMMANDS = {
    "submit": (submit, "run a compiled pipeline on Vertex AI"),
    "schedule": (schedule, "manage recurring runs from a file"),
}
"""Command -> (module, help text); the module has `add_options(parser)` and `run(options) -> exit code`."""


def _parser() -> cli.Parser:
    top = cli.Parser("python -m pipelines", description=_DESCRIPTION, epilog=cli.EXIT_CODES)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command, (module, text) in _COMMANDS.items():
        description = f"{text[0].upper()}{text[1:]}."
        added = commands.add_parser(command, help=text, description=description, epilog=cli.EXIT_CODES)
        module.add_options(added)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command.

    Args:
        argv: The arguments without the program's name; None for `sys.argv[1:]`.

    Returns:
        The exit code: 0 success, 1 the run failed, 2 invalid input, 130 stopped.
    """
    options = _parser().parse_args(argv)
    return cli.run(lambda: _COMMANDS[options.command][0].run(options), failures=(CallFailed,))


if __name__ == "__main__":
    sys.exit(main())
