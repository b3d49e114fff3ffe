"""What commands print with `--json` has the fields and types of docs/json.md, and is all that is on stdout."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

from vertex_testing.runs import STEP, Command, Compile

TYPES = {"text": str, "number": (int, float), "bool": bool, "list": list, "object": dict, "null": type(None)}

LISTS = {"run": "runs", "pipeline": "pipelines", "file": "files", "proof": "proofs", "fault": "faults"} | {
    "finding": "findings"
}
"""What the items of these lists are called in the page."""

Shape = dict[str, tuple[type, ...]]


@dsl.component(**STEP)
def step(number: int) -> int:
    if number < 0:
        raise SystemExit(3)
    return number


@dsl.pipeline(name="answers")
def answers(number: int) -> None:
    step(number=number)


@pytest.fixture(scope="module")
def page(package: Path) -> dict[str, dict[str, Shape]]:
    """The tables of the page by command, and in it by what the table describes; empty for the answer itself."""
    text = (package / "docs" / "json.md").read_text()
    every: dict[str, dict[str, Shape]] = {}
    for section in re.split(r"^## ", text, flags=re.MULTILINE):
        tables: dict[str, Shape] = {}
        for table in re.findall(r"(?:^\|.*\n)+", section, re.MULTILINE):
            head, _, *rows = ([cell.strip() for cell in line.strip("|\n ").split("|")] for line in table.splitlines())
            shape: Shape = tables.setdefault(re.sub(r"^field( of an? )?", "", head[0]), {})
            for row in rows:
                names = re.findall(r"`(\w+)`", row[0])
                kinds = row[1].split(", ") if ", " in row[1] else [row[1]] * len(names)
                for name, kind in zip(names, kinds, strict=True):
                    shape[name] = tuple(TYPES[each] for each in kind.split(" or "))
        every[section.partition("\n")[0]] = tables
    return every


def check(content: dict[str, Any], tables: dict[str, Shape], name: str = "", optional: tuple[str, ...] = ()) -> None:
    """Compare an object, and the objects in its lists, with the tables."""
    assert {*tables[name]} - {*optional} <= {*content} <= {*tables[name]}, name
    for field, value in content.items():
        kinds = tables[name][field]
        assert isinstance(value, kinds), (name, field, value)
        assert isinstance(value, bool) <= (kinds == (bool,)), (name, field, value)
        for item, list_name in LISTS.items():
            for each in value if field == list_name and item in tables else ():
                unread = ("unreadable", "what", "findings", "notes") if item == "file" else ()
                check(each, tables, item, unread)


def answer(page: Any, name: str, done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    """Return the answer on stdout, which is of the page's form."""
    content: dict[str, Any] = json.loads(done.stdout)
    every = next(tables[""] for tables in page.values() if "format" in tables.get("", {}))
    tables = page[name] | {"": every | page[name][""]}
    check(content, tables)
    assert (content["command"], content["exit_code"]) == (name, done.returncode)
    return content


def test_run_and_list(page: Any, command: Command, compiled: Compile, tmp_path: Path) -> None:
    file = compiled(answers)
    good = answer(page, "run", command("run", file, "--json", "-p", "number=1", "--run-id", "good"))
    assert (good["exit_code"], good["error"], good["run"]["state"]) == (0, None, "SUCCEEDED")
    assert good["run"] == json.loads((tmp_path / "runs" / "good" / "run.json").read_text())
    failed = command("run", file, "--json", "-p", "number=-1", "--run-id", "failed")
    assert "step: FAILED" in failed.stderr
    found = answer(page, "run", failed)
    assert (found["exit_code"], found["error"], found["run"]["failed_task"]) == (1, None, "step")
    assert "--resume failed" in found["resume"]
    refused = answer(page, "run", command("run", file, "--json"))
    assert (refused["exit_code"], refused["run"], len(refused["reasons"])) == (2, None, 1)
    assert refused["proposal"].startswith("[parameters]\nnumber = ")
    wrong = answer(page, "run", command("run", tmp_path / "missing.json", "--json"))
    assert (wrong["exit_code"], wrong["reasons"]) == (2, [])
    assert "missing.json" in wrong["error"]
    (tmp_path / "runs" / "damaged").mkdir()
    (tmp_path / "runs" / "damaged" / "run.json").write_text("{")
    runs = answer(page, "list", command("list", "--json"))["runs"]
    assert [(each["run_id"], each["state"], bool(each["problem"])) for each in runs] == [
        ("failed", "FAILED", False),
        ("good", "SUCCEEDED", False),
        (None, None, True),
    ]


def test_init(page: Any, command: Command, compiled: Compile, tmp_path: Path) -> None:
    compiled(answers)
    for is_new in (True, False):
        found = answer(page, "init", command("init", "--json"))
        assert [each["is_written"] for each in found["files"]] == [is_new, is_new]
        assert [(each["name"], each["missing"]) for each in found["pipelines"]] == [("answers", {"number": 1})]
    written = {each["path"]: each["text"] for each in found["files"]}
    assert written == {name: (tmp_path / name).read_text() for name in written}


def test_check(page: Any, package: Path, tmp_path: Path) -> None:
    file = package / "tests" / "data" / "machines" / "pipelines" / "literal.json"
    for options, code in (([], 2), (["--region", "mars-1"], 2)):
        words = [sys.executable, "-m", "localvertex", "machines", "check", file, "missing.json", "--json", *options]
        done = subprocess.run(words, cwd=tmp_path, env=os.environ, capture_output=True, text=True)
        found = answer(page, "check", done)
        assert found["exit_code"] == code
        assert (len(found["files"]), bool(found["error"])) == ((0, True) if options else (2, False))


TRAINING = """
import sys, time
for step in range(4):
    print(f"step {step + 1} loss={1 / (step + 1)}", flush=True)
    time.sleep(0.2)
"""


@pytest.mark.slow
def test_prove(page: Any, command_process: Command, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAINING)
    words = ("prove", "--fault", "killed-in-the-middle", "--json", "--", "python", "train.py")
    found = answer(page, "prove", command_process(*words))
    assert [each["fault"] for each in found["proofs"][0]["faults"]] == ["killed-in-the-middle"]
    assert Path(found["page"]).is_file()
