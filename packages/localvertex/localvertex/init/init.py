"""The command `init`: a table of the pipelines in a folder, a localvertex.toml to fill in, and a first test.

It asks nothing, runs nothing of the folder, and overwrites nothing: a file that exists stays, and what it would have
contained is printed.
"""

import argparse
import textwrap
from collections.abc import Iterator
from pathlib import Path

from localvertex._base.userinput import cli, reading
from localvertex._base.userinput.cli import one_line
from localvertex._base.userinput.errors import UserError
from localvertex.init import verdicts
from localvertex.init.search import search
from localvertex.init.verdicts import Row
from localvertex.runner.checks.proposal import Tables, merged, text_of
from localvertex.values.configuration import FILE, Configuration

_WIDTH = 80
_VERDICT_WIDTH = max(map(len, verdicts.ORDER))
_TEST_FILE = "test_pipelines_locally.py"
_FAULT = """\
        # The first process of the job is killed once; the job has to end well after its restart.
        faults=["SIGKILL workerpool0-0 at 3s"],
"""
_CONFIGURATION = """\
# What `python -m localvertex run` uses in place of what these pipelines do not find on this machine.
# Remove the leading "# " of the lines you fill in; paths are relative to this file.

{}
"""
_HEAD = '''\
"""The pipelines of this repository run on this machine, without a cloud. Written once by `localvertex init`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[{depth}]
'''
_TEST = """

def test_{name}(run_pipeline):
    run = run_pipeline(
        ROOT / {path!r},
{arguments}        config=ROOT / "localvertex.toml",
    )
    assert run.state == "SUCCEEDED"
"""


def execute(options: argparse.Namespace) -> int:
    """Search a folder, print the table, and write the two files; return the exit code.

    Raises:
        UserError: It is not a folder, or a file cannot be written.
    """
    folder: Path = options.folder
    if not folder.is_dir():
        raise UserError(f"{reading.display(folder)} is not a folder; give the folder of a repository")
    rows, test_folders = search(folder)
    options.answer["pipelines"] = [{**vars(each), "proposal": text_of(each.proposal, Configuration())} for each in rows]
    for each in rows:
        _print_row(each)
    compiled = [each for each in rows if each.is_compiled]
    if not compiled:
        print(
            f"no compiled pipeline in {reading.display(folder)}: compile one and run init again. Nothing was written."
        )
        return cli.FAILED
    # A link would lead to where nothing may be written.
    place = min(test_folders, key=lambda each: (len(each.parts), str(each)), default=Path("tests"))
    place = Path() if (folder / place).is_symlink() else place
    best = min(compiled, key=lambda each: (verdicts.ORDER.index(each.verdict), not each.custom_job))
    runnable = [each for each in compiled if each.verdict in (verdicts.RUNS, verdicts.NEEDS)] or [best]
    text = text_of(_tables(compiled), Configuration())
    lines = [f"# {one_line(line)}" if line else "" for line in text.splitlines()]
    files = {
        Path(FILE): _CONFIGURATION.format("\n".join(lines) or "# Nothing is needed so far."),
        place / _TEST_FILE: _HEAD.format(depth=len(place.parts)) + "".join(_tests(runnable)),
    }
    codes = {path: _write(folder, path, content) for path, content in files.items()}
    options.answer["files"] = [
        {"path": str(path), "is_written": code == cli.DONE, "text": files[path]} for path, code in codes.items()
    ]
    return max(codes.values())


def _print_row(row: Row) -> None:
    """Print a pipeline with its verdict, and below it what stops it, or the command that compiles it."""
    room, name = _WIDTH - 2 - _VERDICT_WIDTH, one_line(row.path)
    print(f"{name:{room}}  {row.verdict}" if len(name) <= room else f"{name}\n{'':{room}}  {row.verdict}")
    for text in row.details:
        print(textwrap.fill(one_line(text), _WIDTH, initial_indent="  ", subsequent_indent="  "))
    if row.command:
        # Never broken, so that it can be pasted.
        print(f"  {row.command}")


def _tables(rows: list[Row]) -> Tables:
    """Return the tables of all pipelines; with several pipelines, each has its own tables of steps."""
    tables: Tables = {}
    for row in rows:
        for names, content in row.proposal.items():
            own = ("pipeline", row.name) if names[0] == "step" and len(rows) > 1 else ()
            tables[*own, *names] = merged(tables.get((*own, *names), {}), content)
    return tables


def _tests(rows: list[Row]) -> Iterator[str]:
    """Yield a test for each pipeline; of several with one name, each is named by its file."""
    for row in rows:
        is_alone = [verdicts.identifier(each.name, "_") for each in rows].count(verdicts.identifier(row.name, "_")) == 1
        yield _test(row, verdicts.identifier(row.name if is_alone else row.path, "_"))


def _test(row: Row, name: str) -> str:
    values = [f"            {name!r}: {value!r},  # fill in\n" for name, value in row.missing.items()]
    text = _TEST.format(
        name=name,
        path=row.path,
        arguments="".join(["        parameters={\n", *values, "        },\n"] if values else [])
        + _FAULT * bool(row.custom_job),
    )
    if row.custom_job:
        text += f'    assert run.tasks[{row.custom_job!r}]["custom_job"]["replicas"][0]["num_starts"] == 2\n'
    return text


def _write(folder: Path, path: Path, text: str) -> int:
    """Write a new file; if there is one, print the text instead."""
    shown = reading.display(path)
    try:
        (folder / path).parent.mkdir(exist_ok=True)
        # Not through a link either, even if it leads nowhere.
        with (folder / path).open("x", encoding="utf-8") as file:
            file.write(text)
    except FileExistsError:
        print(f"{shown} exists and was not changed; it would contain:")
        print("\n".join(f"    {one_line(line)}".rstrip() for line in text.splitlines()))
        return cli.FAILED
    except OSError as error:
        raise UserError(f"{shown} cannot be written: {error.strerror}") from None
    print(f"wrote {shown}")
    return cli.DONE
