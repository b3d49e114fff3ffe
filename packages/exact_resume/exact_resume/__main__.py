"""Run an unchanged training command: restore its newest whole checkpoint first, and commit each new one.

The command writes checkpoints into a folder of its own (--watch) and resumes by itself from the newest one there.
Run the same line again and it resumes; a finished run exits at once.

`python -m exact_resume rehearse -- COMMAND...` rehearses a program with `exact_resume.run`: 0 if it resumes exactly.
"""

import argparse
import os
import pathlib
import sys
from collections.abc import Sequence
from typing import NoReturn

from exact_resume import rehearsal
from exact_resume.errors import InputError, RunError
from exact_resume.text import one_line, quote
from exact_resume.wrapper import exit_codes
from exact_resume.wrapper.output import Progress
from exact_resume.wrapper.run import run
from exact_resume.wrapper.whole import Rule

_EXIT_CODES = (
    "exit codes: those of the command, 128+N if signal N ended it; 1 the checkpoint folder or another job, 2 invalid"
    " input, 134 lost a peer, 130 and 143 stopped (safe to retry)"
)


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        self.exit(2, f"error: {one_line(message)}; {self.prog} --help lists the valid options\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    words = sys.argv[1:] if arguments is None else [*arguments]
    try:
        if words[:1] == ["rehearse"]:
            if words[1:2] != ["--"] or not words[2:]:
                raise InputError(
                    "rehearse needs -- and then the command: python -m exact_resume rehearse -- python train.py"
                )
            return rehearsal.rehearse(words[2:])
        return _run(_parser().parse_args(words))
    except (InputError, RunError, OSError) as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt:
        return 130


def _run(options: argparse.Namespace) -> int:
    directory = options.checkpoint_directory.rstrip("/")
    watched = pathlib.Path(options.watch).resolve()
    if not directory:
        raise InputError("--checkpoint-directory is missing, and AIP_CHECKPOINT_DIR is not set; give a folder")
    is_within = "://" not in directory and pathlib.Path(directory).resolve().is_relative_to(watched)
    if is_within or "://" in options.watch or not options.watch:
        raise InputError(
            f"--watch={quote(options.watch)} is not a local folder, or contains --checkpoint-directory; give the one"
            " that the command writes into, and another folder that outlives this machine"
        )
    return run(
        options.command,
        directory,
        Rule.parse(options.whole, watched, options.also),
        Progress(options.progress),
        exit_codes.parse(options.exit_code),
        {"program": "python -m exact_resume", "command": options.command},
    )


def _parser() -> argparse.ArgumentParser:
    made = _Parser(
        "python -m exact_resume",
        usage="%(prog)s [options] -- COMMAND...",
        description=__doc__,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    made.add_argument(
        "--checkpoint-directory",
        metavar="DIR",
        default=os.environ.get("AIP_CHECKPOINT_DIR", ""),
        help="folder or gs://... for committed checkpoints, event log and result.json [$AIP_CHECKPOINT_DIR]",
    )
    made.add_argument("--watch", metavar="DIR", required=True, help="local folder of the command's own checkpoints")
    made.add_argument(
        "--whole",
        metavar="RULE",
        required=True,
        help="when one is whole: rename:PATTERN, marker:PATTERN/FILE, header:PATTERN or closed:PATTERN",
    )
    made.add_argument(
        "--also",
        metavar="PATTERN",
        action="append",
        default=[],
        help="files that belong to each checkpoint and are committed and restored with it; may be repeated",
    )
    made.add_argument(
        "--progress",
        metavar="REGEX",
        default="",
        help="pattern of a line of output, with named groups: step, loss, ...",
    )
    made.add_argument(
        "--exit-code",
        metavar="CODE=CODE[:lost-peer]",
        action="append",
        default=[],
        help="exit with another code, with :lost-peer if torchrun's error file says so; may be repeated",
    )
    made.add_argument("command", nargs="+", help="program and arguments, after --")
    return made


if __name__ == "__main__":
    sys.exit(main())
