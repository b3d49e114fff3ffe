"""The command line: `python -m pipelines submit | custom-job | schedule`."""

import argparse
import importlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from accelerators import CatalogueError, UnreadableFile
from pipelines.vertex import CallFailed
from userinput.errors import UserError

DESCRIPTION = "What is done on Vertex AI with a compiled pipeline; docs/cloud.md tells the way there."
EPILOGUE = "exit codes: 0 done, 1 it ran and failed, 2 the input is wrong, 130 stopped by Ctrl-C"

COMMANDS = {
    "submit": ("pipelines.commands.submit", "run a compiled pipeline on Vertex AI"),
    "custom-job": ("pipelines.commands.custom_job", "run the training job alone, without the pipeline around it"),
    "schedule": ("pipelines.commands.schedule", "recurring runs, as a file has them"),
}
"""Name -> (module, what it does); the module has `add_options(parser)` and `run(options) -> exit code`."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose complaints are one line."""

    def error(self, message: str) -> NoReturn:
        """Print the mistake and leave with exit code 2."""
        self.exit(2, f"error: {message}; {self.prog} --help lists what is valid\n")


def parser(name: str) -> Parser:
    """Return the options of all commands; only the module of the named one is imported."""
    top = Parser(prog="python -m pipelines", description=DESCRIPTION, epilog=EPILOGUE, allow_abbrev=False)
    commands = top.add_subparsers(dest="command", required=True, metavar="COMMAND")
    for command, (module, text) in COMMANDS.items():
        description = f"{text[0].upper()}{text[1:]}."
        made = commands.add_parser(command, help=text, description=description, epilog=EPILOGUE, allow_abbrev=False)
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
    try:
        options = parser(arguments[0] if arguments else "").parse_args(arguments)
        code: int = importlib.import_module(COMMANDS[options.command][0]).run(options)
        sys.stdout.flush()
        return code
    except (UserError, UnreadableFile, CatalogueError) as mistake:
        print(f"error: {mistake}", file=sys.stderr)
        return 2
    except CallFailed as failure:
        print(f"error: {failure}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # The reader of our output has gone (`| head`); there is nobody left to tell.
        sys.stderr.close()
        return 1
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
