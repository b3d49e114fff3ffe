"""A program's `main`, called in the process of the test: same streams and exit code, without the start-up."""

import contextlib
import io
import os
import signal
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

Main = Callable[[list[str]], int]


def call(
    main: Main,
    arguments: Sequence[object],
    *,
    cwd: Path,
    environment: Mapping[str, str] | None = None,
    stdin: str | bytes | None = None,
    program: str = "program",
) -> subprocess.CompletedProcess[str]:
    """Call a program's `main` and return what a shell would see.

    Args:
        main: The function behind `python -m ...`.
        arguments: Its arguments, without the program's name.
        cwd: The current folder during the call.
        environment: All variables during the call; None: this process's own.
        stdin: Its standard input; bytes need not be valid text. None for an empty one.
        program: Its `sys.argv[0]`.

    Returns:
        The exit code and both output streams as text.
    """
    words = [str(argument) for argument in arguments]
    given = stdin.encode() if isinstance(stdin, str) else stdin or b""
    streams: dict[str, Any] = {"stdin": _stream(given), "stdout": _stream(), "stderr": _stream()}
    with (
        contextlib.chdir(cwd),
        mock.patch.dict(os.environ, environment or {}, clear=environment is not None),
        mock.patch.multiple(sys, argv=[program, *words], **streams),
        _warnings_of_a_program(),
        _signal_handlers_kept(),
    ):
        code = _exit_code(main, words)
    return subprocess.CompletedProcess([program, *words], code, _text(streams["stdout"]), _text(streams["stderr"]))


def _exit_code(main: Main, words: list[str]) -> int:
    try:
        return main(words)
    except SystemExit as end:
        if isinstance(end.code, str):
            print(end.code, file=sys.stderr)
            return 1
        return end.code or 0


@contextlib.contextmanager
def _warnings_of_a_program() -> Iterator[None]:
    """Ignore what Python ignores outside tests; any other warning stays an error."""
    with warnings.catch_warnings():
        for category in (DeprecationWarning, PendingDeprecationWarning, ImportWarning, ResourceWarning):
            warnings.simplefilter("ignore", category)
        yield


@contextlib.contextmanager
def _signal_handlers_kept() -> Iterator[None]:
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def _stream(data: bytes = b"") -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(data), encoding="utf-8", write_through=True)


def _text(stream: io.TextIOWrapper) -> str:
    stream.seek(0)
    return stream.read()
