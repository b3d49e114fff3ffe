"""Run a training command that is not changed, restore its newest whole checkpoint before, and commit each new one.

The command writes checkpoints into a folder of its own (--watch) and resumes by itself from the newest one there.
Run the same line again and it resumes; a finished run exits at once.
"""

import argparse
import hashlib
import os
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import NoReturn

from exact_resume.errors import InputError, RunError
from exact_resume.text import one_line, quote
from exact_resume.workers.signals import StopRequest
from exact_resume.wrapper import exit_codes, output
from exact_resume.wrapper.exit_codes import ERROR_FILE
from exact_resume.wrapper.guard import Guard
from exact_resume.wrapper.whole import Rule

_EXIT_CODES = (
    "exit codes: those of the command, 128+N if signal N ended it; 1 the checkpoint folder or another job, 2 invalid"
    " input, 134 lost a peer, 130 and 143 stopped (safe to retry)"
)
_OPTIONS = (
    (
        "--checkpoint-directory",
        "DIR",
        "folder or gs://... for committed checkpoints, event log and result.json [$AIP_CHECKPOINT_DIR]",
    ),
    ("--watch", "DIR", "local folder of the command's own checkpoints"),
    ("--whole", "RULE", "when one is whole: rename:PATTERN, marker:PATTERN/FILE or header:PATTERN"),
    ("--progress", "REGEX", "pattern of a line of output, with named groups: step, loss, ..."),
)
_REPEATED = (
    (
        "--exit-code",
        "CODE=CODE[:lost-peer]",
        "exit with another code, with :lost-peer if torchrun's error file says so",
    ),
    ("--code", "FILE", "file whose content identifies the run, as the command does"),
    ("--config", "NAME=VALUE", "value that identifies the run, too"),
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
        from exact_resume.wrapper.run import WrappedRun

        run = WrappedRun(
            directory=directory,
            watched=watched,
            rule=rule,
            keep=options.keep,
            pattern=pattern,
            table=table,
            error_file=pathlib.Path(environment.get(ERROR_FILE, os.path.join(scratch, "error.json"))),
            identity=identity,
            guard=guard,
            stop=stop,
        )
        return run.run()


def _folders(options: argparse.Namespace) -> tuple[str, pathlib.Path]:
    directory = (options.checkpoint_directory or os.environ.get("AIP_CHECKPOINT_DIR", "")).rstrip("/")
    if not directory:
        raise InputError("--checkpoint-directory is missing, and AIP_CHECKPOINT_DIR is not set; give a folder")
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
        try:
            identity[f"code {path}"] = hashlib.sha256(pathlib.Path(path).read_bytes()).hexdigest()
        except OSError as error:
            raise InputError(f"--code={quote(path)} cannot be read: {error}") from error
    for text in options.config:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise InputError(f"--config={quote(text)} is not valid; expected NAME=VALUE")
        identity[f"config {name}"] = value
    return identity


def _parser() -> argparse.ArgumentParser:
    made = _Parser(
        "python -m exact_resume",
        usage="%(prog)s [options] -- COMMAND...",
        description=__doc__,
        epilog=_EXIT_CODES,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )
    for flag, metavar, text in _OPTIONS:
        made.add_argument(flag, metavar=metavar, default="", help=text, required=flag in ("--watch", "--whole"))
    made.add_argument("--keep", metavar="N", type=int, default=2, help="committed checkpoints to keep [%(default)s]")
    for flag, metavar, text in _REPEATED:
        made.add_argument(flag, metavar=metavar, action="append", default=[], help=f"{text}; may be repeated")
    return made


if __name__ == "__main__":
    sys.exit(main())
