"""The command line: `python -m pipelines submit | custom-job | schedule`."""

import importlib
import sys
from collections.abc import Sequence

from pipelines.vertex import CallFailed
from userinput import cli

DESCRIPTION = "What is done on Vertex AI with a compiled pipeline; docs/cloud.md tells the way there."

COMMANDS = {
    "submit": ("pipelines.commands.submit", "run a compiled pipeline on Vertex AI"),
    "custom-job": ("pipelines.commands.custom_job", "run the training job alone, without the pipeline around it"),
    "schedule": ("pipelines.commands.schedule", "recurring runs, as a file has them"),
}
"""Name -> (module, what it does); the module has `add_options(parser)` and `run(options) -> exit code`."""


def parser(name: str) -> cli.Parser:
    """Return the options of all commands; only the module of the named one is imported."""
    top = cli.Parser("python -m pipelines", description=DESCRIPTION, epilog=cli.EXIT_CODES)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command, (module, text) in COMMANDS.items():
        description = f"{text[0].upper()}{text[1:]}."
        made = commands.add_parser(command, help=text, description=description, epilog=cli.EXIT_CODES)
        if command == name:
            importlib.import_module(module).add_options(made)
    return top


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command.

    Args:
        argv: The arguments without the program's name; None for those of this process.

    Returns:
        0 done, 1 it ran and failed, 2 the input is wrong, 130 stopped.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    options = parser(arguments[0] if arguments else "").parse_args(arguments)
    command = importlib.import_module(COMMANDS[options.command][0])
    return cli.run(lambda: command.run(options), failures=(CallFailed,))


if __name__ == "__main__":
    sys.exit(main())
