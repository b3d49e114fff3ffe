"""The command line: `python -m localvertex machines check | table | convert`."""

import importlib
import sys
from collections.abc import Sequence

from localvertex._base.userinput import cli

_DESCRIPTION = """\
Check jobs against the machines, GPUs and regions of Vertex AI training before
they are queued.

  check    find invalid machines, GPUs, counts, regions and scheduling in
           pipelines, worker pools and custom jobs
  table    print the machine types, the GPUs of each, and where they are offered
  convert  turn a config.yaml or gcloud command of AI Platform Training into a
           Vertex AI custom job
"""
_EPILOGUE = "Details: python -m localvertex machines COMMAND --help, and docs/machines.md"
_COMMANDS = ("check", "table", "convert")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command.

    Args:
        argv: The arguments without the program's name; None for `sys.argv[1:]`.

    Returns:
        0 on success, 1 with errors or open decisions, 2 if the input is wrong, 130 on Ctrl-C.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return cli.run(lambda: _run(arguments), if_closed=cli.DONE)


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in _COMMANDS:
        return _top(arguments)
    # Only the requested command is imported, because check has to start fast.
    command = importlib.import_module(f"localvertex.machines.commands.{arguments[0]}")
    code: int = command.run(arguments[1:])
    return code


def _top(arguments: list[str]) -> int:
    parser = cli.Parser("python -m localvertex machines", description=_DESCRIPTION, epilog=_EPILOGUE)
    parser.add_argument("command", choices=_COMMANDS, metavar="COMMAND", help="check, table or convert")
    parser.parse_args(arguments)
    return cli.WRONG_INPUT


if __name__ == "__main__":
    sys.exit(main())
