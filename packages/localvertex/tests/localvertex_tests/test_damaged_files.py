"""Valid files with random damage: refused in single lines, or run to an end."""

import copy
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from kfp.dsl import Collected, ConcatPlaceholder, Dataset, IfPresentPlaceholder, Input, Output, PipelineTaskFinalStatus
from localvertex_tests.support.documents import fields

import localvertex
from localvertex.errors import Refused
from localvertex.runner.engine import open_file
from vertex_testing.runs import STEP, Execute


@dsl.component(**STEP)
def make(n: int, options: dict, names: list, out: Output[Dataset]) -> int:
    return n


@dsl.component(**STEP)
def take(data: Input[Dataset], numbers: list, text: str = "x") -> str:
    return text


@dsl.component(**STEP)
def count(n: int) -> int:
    return n


@dsl.component(**STEP)
def report(status: PipelineTaskFinalStatus) -> None:
    print(status.state)


@dsl.container_component
def shell(text: str, maybe: str = "m") -> dsl.ContainerSpec:
    extra = IfPresentPlaceholder(input_name="maybe", then=["--maybe", maybe], else_=["--none"])
    return dsl.ContainerSpec(image="alpine", command=["true", ConcatPlaceholder(["<", text, ">"])], args=[extra])


@dsl.pipeline(name="everything")
def everything(n: int = 3, text: str = "it", items: list = [1, 2]) -> None:  # noqa: B006 - literals of the compiled file
    with dsl.ExitHandler(report()):
        first = make(n=n, options={"a": [text, n]}, names=[1, "b"]).set_retry(1, backoff_duration="1s")
        with dsl.ParallelFor(items, parallelism=1) as item:
            each = make(n=item, options={}, names=[])
        with dsl.If(n > 2):
            yes = take(data=first.outputs["out"], numbers=Collected(each.outputs["Output"])).set_env_variable("A", "b")
        with dsl.Else():
            no = take(data=first.outputs["out"], numbers=[], text=f"{text}!")
        shell(text=dsl.OneOf(yes.output, no.output)).set_caching_options(False)
        imported = dsl.importer(artifact_uri="https://b/c", artifact_class=Dataset, metadata={"n": n})
        count(n=1).after(imported).ignore_upstream_failure()


@pytest.fixture(scope="module")
def good(compile_pipeline: Callable[[Any, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a valid pipeline that uses every feature, decoded."""
    return json.loads(compile_pipeline(everything, tmp_path_factory.mktemp("good") / "p.json").read_text())


def test_the_undamaged_file_runs(good: dict[str, Any], tmp_path: Path, execute: Execute) -> None:
    (tmp_path / "p.json").write_text(json.dumps(good))
    assert execute(tmp_path / "p.json")["state"] == "SUCCEEDED"


def reasons_of(path: Path) -> list[str]:
    """Return the reasons for a refusal, none when the file is accepted; any other exception is a defect."""
    try:
        open_file(path)
    except Refused as refused:
        return refused.reasons
    except localvertex.UserError as error:
        return [str(error)]
    return []


VALUES: list[Any] = [
    None,
    0,
    -1,
    1.5,
    1e308,
    10**30,
    True,
    "",
    "x",
    "../..",
    "/etc/passwd",
    "{{$.x}}",
    "{{$",
    "\ud800",
    "\0",
    "a\nb",
    "9" * 5000,
    "a." * 30_000 + "b",
    "(" * 5000,
    '{"Concat": 3}',
    '{"IfPresent": {"InputName": 1}}',
    '{"Concat": ["',
    "root",
    "-1s",
    "1e999s",
    [],
    [1],
    [None],
    [[]],
    {},
    {"a": 1},
    {"": ""},
    {"../x": {}},
    ["\0"],
    [{}],
]


def damage(document: Any, chance: random.Random) -> None:
    """Change one field: replace its value, remove it, copy another subtree into it, or rename its key."""
    container, key = chance.choice(fields(document))
    kind = chance.random()
    if kind < 0.5:
        container[key] = copy.deepcopy(chance.choice(VALUES))
    elif kind < 0.65:
        del container[key]
    elif kind < 0.85:
        other, name = chance.choice(fields(document))
        container[key] = copy.deepcopy(other[name])
    elif isinstance(container, dict):
        container[chance.choice(["zz", "../e", "a/b", "\0", "x" * 300, str(key).upper()])] = container.pop(key)


NUM_DAMAGED = 200


def test_two_hundred_damaged_files_are_refused_in_single_lines(
    good: dict[str, Any], tmp_path: Path, work_dir: Path
) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance, num_refused, num_files = random.Random(seed), 0, 0
    while num_refused < NUM_DAMAGED:
        num_files += 1
        assert num_files < 20 * NUM_DAMAGED, seed
        document = copy.deepcopy(good)
        for _ in range(chance.choice([1, 1, 2, 4])):
            damage(document, chance)
        path = tmp_path / f"p{'.json' if chance.random() < 0.7 else '.yaml'}"
        path.write_text(json.dumps(document))
        reasons = reasons_of(path)
        assert all(reason and len(reason.splitlines()) == 1 for reason in reasons), (seed, num_files, reasons)
        num_refused += bool(reasons)
    assert not work_dir.exists()


@pytest.mark.soak
@pytest.mark.slow
def test_damaged_files_that_are_accepted_run_to_an_end(good: dict[str, Any], tmp_path: Path, execute: Execute) -> None:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance, num_run = random.Random(seed), 0
    while num_run < 40:
        document = copy.deepcopy(good)
        damage(document, chance)
        (tmp_path / "p.json").write_text(json.dumps(document))
        if document == good or reasons_of(tmp_path / "p.json"):
            continue
        try:
            record = execute(tmp_path / "p.json", use_cache=False)
        except localvertex.UserError:
            continue  # A required parameter of the pipeline has lost its default.
        num_run += 1
        assert record["state"] in ("SUCCEEDED", "FAILED"), (seed, num_run)
        errors = [each["error"] or "" for each in record["tasks"]]
        assert not any("localvertex failed" in error for error in errors), (seed, num_run, errors)
