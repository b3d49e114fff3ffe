"""Values as on Vertex AI: large integers, empty lists and objects, resources that a launcher never writes."""

import json
from pathlib import Path
from typing import Any

from kfp import dsl

from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask

LARGE = 2**53 + 1


@dsl.component(**STEP)
def double_it(n: int) -> int:
    return n * 2 + 1


@dsl.component(**STEP)
def describe(items: list, table: dict) -> str:
    return f"{items!r} {table!r}"


@dsl.pipeline(name="large")
def large(n: int, items: list = {}, table: dict = []) -> int:  # noqa: B006
    describe(items=items, table=table)
    return double_it(n=double_it(n=n).output).output


def test_large_integers_are_rounded_as_doubles_with_a_warning(execute: Execute, task: FindTask) -> None:
    record = execute(large, {"n": LARGE})
    first = int(float(int(float(LARGE)) * 2 + 1))
    assert record["parameters"]["n"] == LARGE - 1
    assert task(record, "double-it")["inputs"]["parameters"] == {"n": LARGE - 1}
    assert task(record, "double-it")["outputs"]["parameters"] == {"Output": first}
    assert record["outputs"]["parameters"] == {"Output": int(float(first * 2 + 1))}
    warnings = [text for text in record["warnings"] if "stores numbers as doubles" in text]
    assert [text.partition(":")[0] for text in warnings] == ["parameter 'n'", "double-it", "double-it-2"]


def test_exact_integers_give_no_warning(execute: Execute) -> None:
    record = execute(large, {"n": 2**50})
    assert record["outputs"]["parameters"] == {"Output": 2**52 + 3}
    assert not [text for text in record["warnings"] if "doubles" in text]


def test_the_other_kind_of_empty_is_the_declared_one(compiled: Compile, command: Command, tmp_path: Path) -> None:
    file = compiled(large)
    for run_id, words in (("defaults", ()), ("given", ("-p", "items={}", "-p", "table=[]"))):
        done = command("run", file, "--run-id", run_id, "-p", "n=1", *words)
        assert done.returncode == 0, done.stderr
        record = json.loads((tmp_path / "runs" / run_id / "run.json").read_text())
        described = next(each for each in record["tasks"] if each["name"] == "describe")
        assert described["outputs"]["parameters"] == {"Output": "[] {}"}


@dsl.container_component
def launch(gcp_resources: dsl.OutputPath(str), text: dsl.OutputPath(str), write: str) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="tool", command=["bash", "-c", 'echo -n "$2" > "$1"', "tool", text, write])


@dsl.container_component
def launch_only(gcp_resources: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="tool", command=["true"])


@dsl.container_component
def forgets(text: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="tool", command=["true"])


@dsl.pipeline(name="launches")
def launches() -> str:
    launch_only()
    return launch(write="done").outputs["text"]


@dsl.pipeline(name="forgotten")
def forgotten() -> None:
    forgets()


def test_resources_that_are_declared_and_never_written_are_tolerated(execute: Execute, task: FindTask) -> None:
    record: dict[str, Any] = execute(launches)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert record["outputs"]["parameters"] == {"Output": "done"}
    assert task(record, "launch-only")["outputs"]["parameters"] == {}
    # Any other output has to be written.
    assert execute(forgotten)["error"] == "forgets: the step ended without its declared output parameter 'text'"
