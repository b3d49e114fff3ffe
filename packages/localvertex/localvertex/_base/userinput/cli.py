"""The command lines of all programs: an argument parser with one-line errors, and the exit codes."""

import argparse
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import redirect_stdout
from pathlib import Path
from typing import Any, NoReturn

from localvertex._base.json_object import JsonObject
from localvertex._base.json_text import encode
from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError

DONE = 0
FAILED = 1
"""The run failed; `localvertex machines`: the input has errors or needs a decision."""
WRONG_INPUT = 2
"""The user's input is wrong; retrying cannot help."""
STOPPED = 130
"""Stopped by Ctrl-C."""
_LONGEST_MESSAGE = 1000
"""Characters; a value that users gave may have any number."""
EXIT_CODES = "exit codes: 0 success, 1 failed, 2 invalid input, 130 stopped by Ctrl-C"


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are one line and whose options cannot be abbreviated."""

    def __init__(self, prog: str | None = None, **options: Any) -> None:
        """Take what `argparse.ArgumentParser` takes; line breaks in texts are kept."""
        super().__init__(prog, formatter_class=argparse.RawDescriptionHelpFormatter, allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Print the problem with the arguments and exit with code 2."""
        self.exit(WRONG_INPUT, f"error: {one_line(message)}; {self.prog} --help lists the valid options\n")


def folder(text: str) -> Path:
    """Return the path of a local folder, as the type of an argument; an empty name would mean the current folder."""
    if not text.strip():
        raise argparse.ArgumentTypeError("the name is empty; give a folder, or . for the current one")
    try:
        return Path(paths.check("DIR", text, is_local=True))
    except UserError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def run(
    main: Callable[[], int],
    *,
    failures: tuple[type[Exception], ...] = (),
    if_closed: int = FAILED,
    note: Callable[[str], object] = str,
) -> int:
    """Call a command and return its exit code; expected errors become one line on stderr.

    Args:
        main: The command; returns an exit code.
        failures: Exceptions that mean that the run failed. Others propagate, with their traceback.
        if_closed: Exit code if the reader of the output, such as `head`, has closed it.
        note: Also receives an expected error.
    """
    expected: tuple[type[Exception], ...] = (UserError, *failures)
    try:
        code = main()
        sys.stdout.flush()
    except expected as error:
        note(str(error))
        print(f"error: {one_line(str(error))}", file=sys.stderr)
        return WRONG_INPUT if isinstance(error, UserError) else FAILED
    except BrokenPipeError:
        # Python flushes stdout once more at exit, which would fail again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return if_closed
    except KeyboardInterrupt:
        return STOPPED
    return code


def answer(command: str, **fields: Any) -> JsonObject:
    """Return the answer of a command for `--json` (docs/json.md) before it has run."""
    return {"format": 1, "command": command, "exit_code": DONE, "error": None, **fields}


def run_json(main: Callable[[], int], content: JsonObject, *, failures: tuple[type[Exception], ...] = ()) -> int:
    """Call a command as `run` does, and print its answer; what else it prints goes to stderr.

    Args:
        main: The command, which fills the answer.
        content: The answer.
        failures: Failures as in `run`.
    """
    with redirect_stdout(sys.stderr):
        code = content["exit_code"] = run(main, failures=failures, note=lambda text: content.update(error=text))
    return run(lambda: print(encode(content).decode()) or code)


def one_line(message: str) -> str:
    """Return a message with its control characters escaped, and without its middle where a value makes it long."""
    text = "".join(each if each.isprintable() else ascii(each)[1:-1] for each in message)
    half = _LONGEST_MESSAGE // 2
    return text if len(text) <= _LONGEST_MESSAGE else f"{text[:half]} ... {text[-half:]}"


def command_word(program: str) -> str:
    """Return a program's name if the shell finds it, otherwise its path. Links are kept: a venv's Python is one."""
    path, name = os.path.abspath(program), os.path.basename(program)
    found = shutil.which(name)
    return name if found and os.path.abspath(found) == path else path
