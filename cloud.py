"""`python cloud.py up | down`: create or remove, with gcloud, the resources that the pipeline needs in a project.

Each step first checks what exists and changes only what is missing, so the command can be repeated.
"""

import argparse
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from localvertex._base.userinput import cli
from localvertex._base.userinput.errors import UserError
from pipelines.project.down import down
from pipelines.project.gcloud import CloudError, EmptyProject, Gcloud
from pipelines.project.resources import Names
from pipelines.project.up import up

_IDENTIFIER = r"[a-z][a-z0-9-]{4,28}[a-z0-9]"
"""A project id, or the name of a service account."""


def _parser() -> cli.Parser:
    parser = cli.Parser(
        "python cloud.py",
        description="Set up a Google Cloud project for the pipeline, or tear it down.",
        epilog=cli.EXIT_CODES,
    )
    commands = parser.add_subparsers(dest="command", required=True, metavar="COMMAND")
    text = "create missing resources, build the container images, compile the pipeline"
    makes = commands.add_parser("up", help=text, description=f"{text.capitalize()}.", epilog=cli.EXIT_CODES)
    _add_names(makes)
    makes.add_argument("--dataflow", action="store_true", help="also enable Dataflow, for prepare on many machines")
    makes.add_argument("--dry-run", action="store_true", help="print the commands for an empty project, run nothing")
    makes.add_argument("--settings", metavar="FILE", type=Path, help="settings of compile.py, as YAML")
    text = "list the resources that up created, ask, and remove them"
    removes = commands.add_parser("down", help=text, description=f"{text.capitalize()}.", epilog=cli.EXIT_CODES)
    _add_names(removes)
    removes.add_argument("--with-bucket", action="store_true", help="also remove the bucket and its contents")
    removes.add_argument("--yes", action="store_true", help="remove without asking, for scripts")
    removes.add_argument("--dry-run", action="store_true", help="list what would be removed, remove nothing")
    return parser


def _add_names(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--project", required=True, help="project id")
    parser.add_argument("--region", default="us-central1", help="region of bucket, repository and jobs (%(default)s)")
    parser.add_argument(
        "--name", default="image-training", help="name of service account and image repository (%(default)s)"
    )


def _names(options: argparse.Namespace) -> Names:
    """Return the names from the options.

    Raises:
        UserError: Google would refuse one.
    """
    # Google is strictest about the name of the account, which is created last: check everything first.
    for flag, value, pattern, expected in (
        ("--project", options.project, _IDENTIFIER, "a project id such as my-project-123"),
        ("--region", options.region, r"[a-z]+-[a-z]+[0-9]+", "a region such as us-central1"),
        ("--name", options.name, _IDENTIFIER, "6 to 30 characters a-z, 0-9 and -, a letter first"),
    ):
        if not re.fullmatch(pattern, value):
            raise UserError(f"{flag} is {value!r}; expected {expected}")
    return Names(project=options.project, region=options.region, name=options.name)


def _confirm(question: str) -> bool:
    """Ask on the terminal; the end of the input counts as no."""
    try:
        return input(question).strip().lower() == "yes"
    except EOFError:
        return False


def _run(options: argparse.Namespace) -> int:
    names = _names(options)
    if options.command == "up":
        gcloud = EmptyProject() if options.dry_run else Gcloud(dry_run=False)
        up(gcloud, names, options.settings, with_dataflow=options.dataflow)
        return cli.DONE
    if not (options.yes or options.dry_run or (sys.stdin and sys.stdin.isatty())):
        raise UserError("standard input is not a terminal; add --yes to remove without a question, or --dry-run")
    confirm = (lambda _: True) if options.yes else _confirm
    down(Gcloud(dry_run=options.dry_run), names, with_bucket=options.with_bucket, confirm=confirm)
    return cli.DONE


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command with the arguments of this process, or with `argv`.

    Returns:
        The exit code: 0 success, 1 a command failed or was not confirmed, 2 invalid input, 130 stopped.
    """
    options = _parser().parse_args(argv)
    return cli.run(lambda: _run(options), failures=(CloudError,))


if __name__ == "__main__":
    sys.exit(main())
