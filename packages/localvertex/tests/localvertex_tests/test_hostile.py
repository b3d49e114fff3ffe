"""Hostile files: refused in single lines, or run to an end."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from vertex_testing.runs import Execute


def nested(depth: int, width: int) -> dict[str, Any]:
    """Return nested dags: `width` tasks in each, all of them the next dag."""
    step = {"executorLabel": "e"}
    dags = {
        f"c{n}": {"dag": {"tasks": {f"t{i}": {"componentRef": {"name": f"c{n + 1}"}} for i in range(width)}}}
        for n in range(depth)
    }
    return {
        "components": dags | {f"c{depth}": step},
        "root": {"dag": {"tasks": {"t": {"componentRef": {"name": "c0"}}}}},
    }


def whole(**parts: Any) -> dict[str, Any]:
    """Return a pipeline with these parts; its only executor does nothing."""
    frame = {"schemaVersion": "2.1.0", "pipelineInfo": {"name": "p"}}
    return {
        **frame,
        "deploymentSpec": {"executors": {"e": {"container": {"image": "i", "command": ["true"]}}}},
        **parts,
    }


def tasks(**specs: Any) -> dict[str, Any]:
    """Return a pipeline of steps with these settings."""
    named = {name: {"componentRef": {"name": "c"}} | spec for name, spec in specs.items()}
    return whole(components={"c": {"executorLabel": "e"}}, root={"dag": {"tasks": named}})


def command(*words: str) -> dict[str, Any]:
    """Return a pipeline of one container step."""
    pipeline = tasks(t={})
    pipeline["deploymentSpec"] = {"executors": {"e": {"container": {"image": "i", "command": list(words)}}}}
    return pipeline


def chain(num: int) -> dict[str, Any]:
    return tasks(**{f"t{n}": {"dependentTasks": [f"t{(n + 1) % num}"]} for n in range(num)})


LONG = "inputs.parameter_values['x']" + ".a" * 20_000

HOSTILE: dict[str, tuple[Any, str]] = {
    "nested dags": (whole(**nested(300, 1)), "301 levels of nested dags"),
    "a bomb of dags": (whole(**nested(40, 10)), "tasks; at most 10000 can run locally"),
    "a bomb of loops": (
        whole(
            components={
                "a": {
                    "dag": {
                        "tasks": {
                            "t": {
                                "componentRef": {"name": "b"},
                                "parameterIterator": {
                                    "itemInput": "x",
                                    "items": {"raw": json.dumps(list(range(5000)))},
                                },
                            }
                        }
                    }
                },
                "b": {"executorLabel": "e", "inputDefinitions": {"parameters": {"x": {"parameterType": "STRING"}}}},
            },
            root={"dag": {"tasks": {f"t{n}": {"componentRef": {"name": "a"}} for n in range(5)}}},
        ),
        "expands to",
    ),
    "a circle of 2000 tasks": (chain(2000), "tasks wait for each other"),
    "a component named root": (
        whole(
            components={"root": {"executorLabel": "none"}},
            root={"dag": {"tasks": {"t": {"componentRef": {"name": "root"}}}}},
        ),
        "components",
    ),
    "a condition that overflows the stack of a parser": (
        tasks(t={"triggerPolicy": {"condition": LONG}}),
        "longer than 4096 characters",
    ),
    "a selector that overflows the stack of a parser": (
        tasks(
            t={
                "inputs": {
                    "parameters": {
                        "x": {
                            "runtimeValue": {"constant": "1"},
                            "parameterExpressionSelector": "string_value" + ".a" * 20_000,
                        }
                    }
                }
            }
        ),
        "longer than 4096 characters",
    ),
    "retries without end": (tasks(t={"retryPolicy": {"maxRetryCount": 1e400}}), "Infinity is not a number in JSON"),
    "a wait of ages": (tasks(t={"retryPolicy": {"backoffDuration": "9" * 400 + "s"}}), "is not a duration"),
    "a path as a name": (tasks(**{"../../../tmp/x": {}}), "is not a usable name"),
    "an absolute path as a name": (tasks(**{"/tmp/x": {}}), "is not a usable name"),
    "a null byte in a name": (tasks(**{"a\0b": {}}), "is not a usable name"),
    "a line feed in a name": (tasks(**{"a\nb": {}}), "is not a usable name"),
    "a null byte in a program": (command("true\0"), "is not installed locally"),
    "a program in its image": (command("./run", "a\nb"), "the program './run' is not installed locally"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_file_is_refused_on_the_command_line(name: str, tmp_path: Path) -> None:
    document, message = HOSTILE[name]
    (tmp_path / "p.json").write_text(json.dumps(document))
    words = [sys.executable, "-m", "localvertex", "run", "p.json"]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, timeout=60)
    assert done.returncode == 2, (done.returncode, done.stderr[-500:])
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["p.json"]


def test_a_folder_that_cannot_be_created_fails_its_step(tmp_path: Path, execute: Execute) -> None:
    long = whole(**nested(40, 1))
    text = json.dumps(long).replace('"t0"', '"' + "t" * 150 + '"')
    (tmp_path / "p.json").write_text(text)
    record = execute(tmp_path / "p.json")
    assert record["state"] == "FAILED"
    assert "cannot write to its folder: File name too long" in record["error"]


def test_a_loop_over_too_many_items_fails_by_name(tmp_path: Path, execute: Execute) -> None:
    component = {"executorLabel": "e", "inputDefinitions": {"parameters": {"x": {"parameterType": "NUMBER_INTEGER"}}}}
    loop = {
        "componentRef": {"name": "c"},
        "inputs": {"parameters": {"all": {"componentInputParameter": "all"}}},
        "parameterIterator": {"itemInput": "x", "items": {"inputParameter": "all"}},
    }
    inputs = {"parameters": {"all": {"parameterType": "LIST"}}}
    document = whole(components={"c": component}, root={"dag": {"tasks": {"t": loop}}, "inputDefinitions": inputs})
    (tmp_path / "p.json").write_text(json.dumps(document))
    record = execute(tmp_path / "p.json", {"all": list(range(10_001))})
    assert record["error"] == "t: the loop has 10001 items; at most 10000 can run locally"
