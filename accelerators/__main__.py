"""The command line: `python -m accelerators check | table | suggest | convert`."""

import sys
from collections.abc import Sequence

from userinput import cli

_DESCRIPTION = """\
What Google's machines can carry on Vertex AI training, and what is wrong with a job before it is queued.

  check    find wrong machines, GPUs, counts, regions and scheduling in a pipeline, worker pools or a custom job
  table    print which machine carries which GPUs, how many, and where
  suggest  list the machines for a GPU and where else it could run when one is out of stock
  convert  turn a config.yaml or gcloud command of AI Platform Training into a Vertex AI custom job
"""
_EPILOGUE = "`python -m accelerators COMMAND --help` tells more. The tables are dated; see docs/accelerators.md."
_COMMANDS = ("check", "table", "suggest", "convert")


def main(argv: Sequence[str] | None = None) -> int:
    """Run one sub-command.

    Args:
        argv: The arguments without the program's name; None for those of this process.

    Returns:
        0 fine, 1 there is something to mend, 2 the input is wrong, 130 stopped.
    """
    arguments = list(sys.argv[1:] if argv is None else argv)
    return cli.run(lambda: _run(arguments), if_closed=cli.DONE)


def _run(arguments: list[str]) -> int:
    if not arguments or arguments[0] not in _COMMANDS:
        return _top(arguments)
    name, rest = arguments[0], arguments[1:]
    # Only the command that is asked for is imported: check is meant to be quick.
    if name == "check":
        from accelerators.commands import check as command
    elif name == "table":
        from accelerators.commands import table as command  # type: ignore[no-redef]
    elif name == "suggest":
        from accelerators.commands import suggest as command  # type: ignore[no-redef]
    else:
        from accelerators.commands import convert as command  # type: ignore[no-redef]
    return command.run(rest)


def _top(arguments: list[str]) -> int:
    parser = cli.Parser("python -m accelerators", description=_DESCRIPTION, epilog=_EPILOGUE)
    parser.add_argument("command", choices=_COMMANDS, metavar="COMMAND", help="check, table, suggest or convert")
    parser.parse_args(arguments)
    return 2


if __name__ == "__main__":
    sys.exit(main())
