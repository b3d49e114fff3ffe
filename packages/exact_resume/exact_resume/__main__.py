"""Run a training command that is not changed, restore its newest whole checkpoint before, and commit each new one.

The command writes checkpoints into a folder of its own (--watch) and resumes by itself from the newest one there.
Run the same line again and it resumes; a finished run exits at once.
"""

import argparse
import hashlib
import os
import pathlib
import re
import sys
import tempfile
from collections.abc import Sequence
from typing import NoReturn

from exact_resume.errors import InputError, RunError
from exact_resume.text import one_line, quote
from exact_resume.workers.signals import StopRequest
from exact_resume.wrapper import exit_codes, output
from exact_resume.wrapper.exit_codes import ERROR_FILE, LOST_PEER
from exact_resume.wrapper.guard import Guard
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
    try:
        return _main(list(sys.argv[1:] if arguments is None else arguments))
    except (InputError, RunError, OSError) as error:
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        return 2 if isinstance(error, InputError) else 1
    except KeyboardInterrupt:
        return 130


def _main(words: list[str]) -> int:
    separator = words.index("--") if "--" in words else len(words)
    options, command = _parser().parse_args(words[:separator]), words[separator + 1 :]
    directory, watched = _folders(options)
    if not command:
        raise InputError("there is no command to wrap; give it after --, such as -- python train.py")
    table, rule = exit_codes.parse(options.exit_code), Rule.parse(options.whole)
    pattern = output.parse_pattern(options.progress) if options.progress else None
    if options.keep < 1:
        raise InputError(f"--keep={options.keep} is too small; expected at least 1")
    with tempfile.TemporaryDirectory(prefix="exact-resume-") as scratch:
        environment = dict(os.environ)
        if any(each.needs_lost_peer for each in table.values()):
            environment.setdefault(ERROR_FILE, os.path.join(scratch, "error.json"))
        if pattern:
            # Python would keep lines back when it writes into a pipe.
            environment.setdefault("PYTHONUNBUFFERED", "1")
        identity = _identity(command, options)
        stop = StopRequest().install()
        # Before NumPy and its threads.
        guard = Guard(command, environment)
        from exact_resume.wrapper.run import Settings, WrappedRun

        settings = Settings(
            directory=directory,
            watched=watched,
            rule=rule,
            keep=options.keep,
            pattern=pattern,
            table=table,
            lost_peer=_compile(options.lost_peer),
            error_file=pathlib.Path(environment.get(ERROR_FILE, os.path.join(scratch, "error.json"))),
            identity=identity,
        )
        return WrappedRun(settings, guard, stop).run()


def _folders(options: argparse.Namespace) -> tuple[str, pathlib.Path]:
    directory = (options.checkpoint_directory or os.environ.get("AIP_CHECKPOINT_DIR", "")).rstrip("/")
    if not directory:
        raise InputError("--checkpoint-directory is missing, and AIP_CHECKPOINT_DIR is not set; give a folder")
    if "://" in directory and not directory.startswith("gs://"):
        raise InputError(f"--checkpoint-directory={quote(directory)} is not supported; give a folder or gs://...")
    if "://" in options.watch or not options.watch:
        raise InputError(f"--watch={quote(options.watch)} is not a local folder; give the one the command writes into")
    watched = pathlib.Path(options.watch).resolve()
    if "://" not in directory and pathlib.Path(directory).resolve().is_relative_to(watched):
        raise InputError(
            f"--checkpoint-directory={quote(directory)} is --watch or within it; give another folder, which outlives"
            " this machine"
        )
    return directory, watched


def _identity(command: list[str], options: argparse.Namespace) -> dict[str, object]:
    """Return what decides what the command computes, with one field per file and value, which a refusal names."""
    identity: dict[str, object] = {"program": "python -m exact_resume", "command": command}
    for path in options.code:
        identity[f"code {path}"] = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
    for text in options.config:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InputError(f"--config={quote(text)} is not valid; expected NAME=VALUE")
        identity[f"config {name}"] = value
    return identity


def _compile(text: str) -> re.Pattern[str]:
    try:
        return re.compile(text, re.IGNORECASE)
    except re.error as error:
        raise InputError(f"--lost-peer={quote(text)} is not a regular expression: {error}") from None


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
        default="",
        help="folder or gs://... for committed checkpoints, event log and result.json [$AIP_CHECKPOINT_DIR]",
    )
    made.add_argument("--watch", metavar="DIR", required=True, help="local folder of the command's own checkpoints")
    made.add_argument(
        "--whole",
        metavar="RULE",
        required=True,
        help="when a checkpoint is whole: rename:PATTERN, marker:PATTERN/FILE or header:PATTERN",
    )
    made.add_argument("--keep", metavar="N", type=int, default=2, help="committed checkpoints to keep [%(default)s]")
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
        help="exit with another code; with :lost-peer only if torchrun's error file says so; may be repeated",
    )
    made.add_argument(
        "--lost-peer", metavar="REGEX", default=LOST_PEER, help="pattern of errors of a lost peer [those of torch]"
    )
    made.add_argument(
        "--code",
        metavar="FILE",
        action="append",
        default=[],
        help="file whose content identifies the run, as the command does; may be repeated",
    )
    made.add_argument(
        "--config",
        metavar="NAME=VALUE",
        action="append",
        default=[],
        help="value that identifies the run, too; may be repeated",
    )
    return made


if __name__ == "__main__":
    sys.exit(main())
