"""The command `init`: a table of the pipelines in a folder, a localvertex.toml to fill in, and a first test.

It asks nothing, runs nothing of the folder, and overwrites nothing: a file that exists stays, and what it would have
contained is printed.
"""

import os
import re
import shlex
import textwrap
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from localvertex.commands.init.search import Found, search
from localvertex.commands.init.sources import Source
from localvertex.commands.init.verdicts import Judged, Verdict, judge
from localvertex.values.configuration import FILE
from localvertex_base.userinput import cli, reading
from localvertex_base.userinput.cli import one_line
from localvertex_base.userinput.errors import UserError

_WIDTH = 80
_MAX_ROWS = 100
_MAX_SECONDS = 30.0
"""For judging, after the search."""
TEST = "test_pipelines_locally.py"
_FAULT = "SIGKILL workerpool0-0 at 3s"

_CONFIGURATION = """\
# What `python -m localvertex run` uses in place of what these pipelines do not find on this machine.
# Remove the leading "# " of the lines you fill in; paths are relative to this file.
"""

_TEST = '''\
"""A pipeline of this repository runs on this machine, without a cloud. Written once by `localvertex init`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[{depth}]


def test_{name}(run_pipeline):
    run = run_pipeline(
        ROOT / {path},
{arguments}        config=ROOT / "localvertex.toml",
    )
    assert run.state == "SUCCEEDED"
{assertion}'''


def init(folder: Path) -> int:
    """Search a folder, print the table, and write the two files; return the exit code.

    Raises:
        UserError: It is not a folder, or a file cannot be written.
    """
    if not folder.is_dir():
        raise UserError(f"{reading.display(folder)} is not a folder; give the folder of a repository")
    found = search(folder)
    judged = _judge_all(folder, found)
    names = {each.name for each in judged}
    sources = [each for each in found.sources if each.name not in names]
    for line in [*_table(judged, sources), *(f"note: {each}" for each in found.notes)]:
        print(line)
    if not judged:
        searched = f"{reading.display(folder)} (files: {found.num_files:,})"
        print(f"no compiled pipeline in {searched}: compile one and run init again. Nothing was written.")
        return cli.FAILED
    place = _test_folder(folder, found)
    texts = {Path(FILE): _configuration(judged), place / TEST: _test(judged, place)}
    return max(_write(folder, path, text) for path, text in texts.items())


def _judge_all(folder: Path, found: Found) -> list[Judged]:
    judged, deadline = [], time.monotonic() + _MAX_SECONDS
    for number, path in enumerate(found.compiled):
        if time.monotonic() > deadline:
            found.notes.append(f"files that were not read, because it takes too long: {len(found.compiled) - number}")
            break
        if (each := judge(folder, path)) is not None:
            judged.append(each)
    return judged


def _table(judged: Sequence[Judged], sources: Sequence[Source]) -> Iterator[str]:
    """Yield the lines: a row per pipeline, and below it what stops it, or the command that compiles it."""
    rows: list[tuple[str, str, list[str]]] = []
    rows += [(reading.display(each.path), str(each.verdict), _details(each)) for each in judged]
    rows += [(f"{reading.display(each.path)}:{each.line}", "to be compiled", _compile(each)) for each in sources]
    room = _WIDTH - 2 - max(map(len, Verdict))
    rows[:0] = [("pipeline", "verdict", [])] if rows else []
    for path, verdict, details in rows[:_MAX_ROWS]:
        name = one_line(path)
        yield f"{name:{room}}  {verdict}" if len(name) <= room else f"{name}\n{'':{room}}  {verdict}"
        yield from details
    if len(rows) > _MAX_ROWS:
        yield f"and {len(rows) - _MAX_ROWS:,} more; run init in a folder further down"


def _details(judged: Judged) -> list[str]:
    """Return what the user needs to know of a compiled pipeline, in indented lines."""
    texts = []
    if judged.verdict is Verdict.NEEDS:
        texts.append(", ".join(line for line in judged.proposal.splitlines() if line.startswith("[")))
    elif judged.reasons:
        more = len(judged.reasons) - 1
        texts.append(judged.reasons[0] + (f" (and {more} more)" if more else ""))
    if judged.missing:
        texts.append(f"parameters without a default: {', '.join(judged.missing)}")
    return [line for text in texts for line in _wrapped(one_line(text))]


def _wrapped(text: str) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent="  ", subsequent_indent="  ", break_on_hyphens=False)


def _compile(source: Source) -> list[str]:
    """Return how to compile a pipeline function, which is left to the user: it runs the file."""
    uses = [f"uses {', '.join(source.components)}"] if source.components else []
    if source.is_nested:
        uses.append(f"{source.function} is defined in another function: call the code that compiles it")
    if not str(source.path).isprintable():
        uses.append("rename the file: its name has characters that no terminal can show")
    lines = [line for text in uses for line in _wrapped(one_line(text))]
    if source.is_nested or not str(source.path).isprintable():
        return lines
    words = ["dsl-compile-v2"] if source.is_v1 else ["kfp", "dsl", "compile"]
    words += ["--py", str(source.path), "--function", source.function, "--output", _output(source)]
    # Never broken, so that it can be pasted.
    return [*lines, f"  {shlex.join(words)}"]


def _output(source: Source) -> str:
    return f"{_identifier(source.name, '-')}.{'json' if source.is_v1 else 'yaml'}"


def _identifier(text: str, gap: str) -> str:
    return re.sub(r"[^a-z0-9]+", gap, text.casefold())[:60].strip(gap) or "pipeline"


def _test_folder(folder: Path, found: Found) -> Path:
    """Return where the repository has its tests, relative to it, nearest to its root; `tests` if it has none."""
    named = [each for each in found.test_folders if each.name in ("tests", "test")]
    nearest = sorted(named or found.test_folders, key=lambda each: (len(each.parts), str(each)))
    default = folder / "tests"
    usable = not os.path.lexists(default) or (default.is_dir() and not default.is_symlink())
    return nearest[0] if nearest else Path("tests" if usable else ".")


def _test(judged: Sequence[Judged], place: Path) -> str:
    """Return a test of a pipeline that can run, one with a custom job if there is one."""
    order = [Verdict.RUNS, Verdict.NEEDS, Verdict.REFUSED, Verdict.CANNOT]
    chosen = min(judged, key=lambda each: (order.index(each.verdict), not each.custom_job))
    arguments, assertion = [], ""
    if chosen.missing:
        lines = [
            f"            {_literal(name)}: {_literal(value)},  # fill in" for name, value in chosen.missing.items()
        ]
        arguments += ["        parameters={", *lines, "        },"]
    if chosen.custom_job:
        arguments += [
            "        # The first process of the job is killed once; the job has to end well after its restart.",
            f"        faults=[{_literal(_FAULT)}],",
        ]
        task = f'run.tasks[{_literal(chosen.custom_job)}]["custom_job"]'
        assertion = f'    assert {task}["replicas"][0]["num_starts"] == 2\n'
    return _TEST.format(
        depth=len(place.parts),
        name=_identifier(chosen.name, "_"),
        path=_literal(str(chosen.path)),
        arguments="".join(f"{line}\n" for line in arguments),
        assertion=assertion,
    )


def _literal(value: Any) -> str:
    """Return a value as Python, a text in double quotes where that is as short."""
    text = repr(value)
    return f'"{text[1:-1]}"' if isinstance(value, str) and not set("\"'\\") & {*text[1:-1]} else text


def _configuration(judged: Iterable[Judged]) -> str:
    """Return a configuration whose lines are comments: what the pipelines need, each table once."""
    tables: dict[str, dict[str, str]] = {}
    for each in judged:
        for block in each.proposal.split("\n\n"):
            head, *lines = block.splitlines() or [""]
            for line in lines:
                tables.setdefault(head, {}).setdefault(line.partition("=")[0].strip("# "), line)
    blocks = [[head, *lines.values()] for head, lines in tables.items() if head]
    comments = [f"# {one_line(line)}\n" if line else "\n" for block in blocks for line in ("", *block)]
    return _CONFIGURATION + ("".join(comments) or "\n# Nothing is needed so far; docs/localvertex.md has all tables.\n")


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
