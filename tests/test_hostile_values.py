"""Every flag of every trainer command with values that break programs: one line, exit code 2, nothing written.

The table is tests/data/hostile_values.json: values by kind, and the kind of each flag. The commands of the table end
with a user's mistake for any value, because what they are to read is missing.
"""

import argparse
import contextlib
import functools
import importlib
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from localvertex._base.userinput import cli
from trainer import command_line
from vertex_testing.in_process import call

TABLE: dict[str, Any] = json.loads((Path(__file__).parent / "data" / "hostile_values.json").read_text())
PROGRAMS = TABLE["programs"]
LAST = ("output_directory", "images", "task")
"""Positional arguments that are the last of a command; the others are the first."""
SHOWN = {"model_directory": "model_dir", "images": "image"}
"""How the help calls a positional argument."""
NAMED = ("path", "local", "number", "choice", "label")
"""Kinds whose values are all wrong, so that the message has to name the flag."""


def values(kind: str) -> Iterator[str]:
    for value in TABLE["values"][kind]:
        yield value if isinstance(value, str) else value["repeat"][0] * value["repeat"][1]


def cases(field: str) -> list[Any]:
    return [
        pytest.param(program, name, kind, id=f"{' '.join([program['module'], *program.get('command', [])])} {name}")
        for program in PROGRAMS
        for name, kind in program.get(field, {}).items()
    ]


def words(program: dict[str, Any], name: str, value: str) -> list[str]:
    """The command line with one hostile value, in place of what it has for the flag."""
    command, given = program.get("command", []), program["words"]
    if name.startswith("-"):
        return [*command, *(word for word in given if not word.startswith(f"{name}=")), f"{name}={value}"]
    flags = [word for word in given if word.startswith("--")]
    plain = [word for word in given if not word.startswith("--")]
    plain[-1 if name in LAST else 0] = value
    # After --, a value is not taken for a flag.
    return [*command, *flags, "--", *plain]


def run(program: dict[str, Any], arguments: list[str], folder: Path, **variables: str) -> Any:
    main = importlib.import_module(program["module"]).main
    if program["module"].startswith("trainer."):
        main = functools.partial(_trainer_main, main)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), **variables}
    with without_tensorflow():
        return call(main, arguments, cwd=folder, environment=environment)


def _trainer_main(main: Any, arguments: list[str]) -> int:
    return command_line.run(functools.partial(main, arguments))


@contextlib.contextmanager
def without_tensorflow() -> Iterator[None]:
    """Let an import of TensorFlow fail, which takes seconds and prints notes before the line."""
    held = {name: sys.modules.get(name) for name in ("tensorflow", "keras")}
    sys.modules.update(dict.fromkeys(held))  # type: ignore[arg-type]
    try:
        yield
    finally:
        for name, module in held.items():
            if module is None:
                del sys.modules[name]
            else:
                sys.modules[name] = module


def check(done: Any, folder: Path, name: str, value: str, *, is_named: bool) -> None:
    shown = f"{name}={value[:40]!r}: exit {done.returncode}, {done.stderr[-2000:]!r}"
    assert done.returncode == cli.WRONG_INPUT, shown
    assert done.stderr.count("\n") == 1, shown
    assert done.stderr.startswith("error: "), shown
    assert len(done.stderr) < 1500, shown
    assert "Traceback" not in done.stderr, shown
    assert list(folder.iterdir()) == [], shown
    if is_named:
        plain = SHOWN.get(name, name).strip("-").replace("-", " ").replace("_", " ")
        assert plain in done.stderr.lower().replace("-", " ").replace("_", " "), shown


@pytest.mark.parametrize(("program", "name", "kind"), cases("flags"))
def test_a_hostile_value_of_a_flag_is_one_line(tmp_path: Path, program: dict[str, Any], name: str, kind: str) -> None:
    for value in values(kind):
        check(run(program, words(program, name, value), tmp_path), tmp_path, name, value, is_named=kind in NAMED)


@pytest.mark.parametrize(("program", "name", "kind"), cases("variables"))
def test_a_hostile_value_of_a_variable_is_one_line(
    tmp_path: Path, program: dict[str, Any], name: str, kind: str
) -> None:
    # No variable contains a null character, and an empty one is not set.
    for value in (each for each in values(kind) if each and "\0" not in each):
        done = run(program, program["words"], tmp_path, **{name: value})
        check(done, tmp_path, name, value, is_named=False)
        assert kind != "path" or "missing" not in done.stderr


class _Made(Exception):
    """Raised instead of parsing, with the parser."""


@pytest.mark.parametrize("program", {f"{each['module']} {each.get('command')}": each for each in PROGRAMS}.values())
def test_flags_that_the_table_lacks_take_no_hostile_value_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, program: dict[str, Any]
) -> None:
    known = {flag for each in PROGRAMS if _same(each, program) for flag in each.get("flags", {})}
    # An empty one is the same as none.
    known |= set(program.get("lenient", []))
    parser = _parser(monkeypatch, program)
    flags = [each for each in parser._actions if each.nargs != 0 and each.option_strings]
    assert flags
    for flag in (each for each in flags if each.option_strings[0] not in known):
        name = flag.option_strings[0]
        kind = "choice" if flag.choices else "any number" if flag.type in (int, float) else "text"
        for value in values(kind):
            check(run(program, words(program, name, value), tmp_path), tmp_path, name, value, is_named=False)


def _parser(monkeypatch: pytest.MonkeyPatch, program: dict[str, Any]) -> argparse.ArgumentParser:
    """The parser of a command, with its flags."""

    def made(parser: argparse.ArgumentParser, *_: object) -> None:
        raise _Made(parser)

    main = importlib.import_module(program["module"]).main
    with monkeypatch.context() as patched:
        patched.setattr(cli.Parser, "parse_args", made)
        with pytest.raises(_Made) as caught:
            main(program.get("command", []))
    parser: argparse.ArgumentParser = caught.value.args[0]
    for command in program.get("command", []):
        for commands in parser._actions:
            if isinstance(commands, argparse._SubParsersAction) and command in commands.choices:
                parser = commands.choices[command]
    return parser


def _same(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return (one["module"], one.get("command")) == (other["module"], other.get("command"))
