"""Pipelines in the shapes that kfp's compiler writes, and their outputs, compared with kfp.local where it works."""

# kfp does not read `Optional[str]`.
# ruff: noqa: UP045

import warnings
from pathlib import Path
from typing import Any, NamedTuple, Optional

import pytest
from kfp import dsl
from kfp.dsl import Artifact, Collected, Dataset, Input, Metrics, Model, Output

from vertex_testing.runs import STEP, Execute


@dsl.component(**STEP)
def double(n: int) -> int:
    return 2 * n


@dsl.component(**STEP)
def add(a: int, b: int) -> int:
    return a + b


@dsl.component(**STEP)
def total(numbers: list[int]) -> int:
    return sum(numbers)


@dsl.component(**STEP)
def numbers_to(n: int) -> list[int]:
    return list(range(1, n + 1))


@dsl.component(**STEP)
def echo(text: str) -> str:
    return text


@dsl.component(**STEP)
def shown(value: dict) -> str:
    return repr(value)


@dsl.component(**STEP)
def shown_list(value: list) -> str:
    return repr(value)


@dsl.component(**STEP)
def write(text: str, out: Output[Dataset]) -> None:
    with open(out.path, "w") as file:
        file.write(text)
    out.metadata["length"] = len(text)


@dsl.component(**STEP)
def read(data: Input[Dataset]) -> str:
    with open(data.path) as file:
        return f"{file.read()}/{data.metadata['length']}"


@dsl.component(**STEP)
def join(parts: Input[list[Artifact]]) -> str:
    return "+".join(open(part.path).read() for part in parts)


@dsl.component(**STEP)
def optional(text: Optional[str] = None, number: Optional[int] = None, default: str = "d") -> str:
    return f"{text} {number} {default}"


@dsl.pipeline(name="nested-conditions")
def nested_conditions(n: int = 3, name: str = "x") -> str:
    with dsl.If(n > 1):
        with dsl.If(name == "x"):
            inner = echo(text="inner")
        with dsl.Else():
            other = echo(text="other")
        chosen = echo(text=dsl.OneOf(inner.output, other.output))
    with dsl.Else():
        small = echo(text="small")
    return dsl.OneOf(chosen.output, small.output)


@dsl.pipeline
def child(n: int, text: Optional[str] = None, flag: bool = True) -> str:
    with dsl.If(flag == True):  # noqa: E712 - a comparison for the compiler
        given = optional(text=text, number=n)
    with dsl.Else():
        nothing = optional()
    return dsl.OneOf(given.output, nothing.output)


@dsl.pipeline(name="nested-optional")
def nested_optional(text: Optional[str] = None) -> str:
    first = child(n=1)
    second = child(n=2, text=text)
    third = child(n=3, text="given", flag=False)
    return echo(text=f"{first.output}|{second.output}|{third.output}").output


@dsl.pipeline(name="nested-loops")
def nested_loops() -> str:
    with dsl.ParallelFor([1, 2]) as a:
        with dsl.ParallelFor([10, 20, 30]) as b:
            each = add(a=a, b=b)
    return shown_list(value=Collected(each.output)).output


@dsl.pipeline(name="loop-over-output")
def loop_over_output(n: int = 4) -> int:
    with dsl.ParallelFor(numbers_to(n=n).output, parallelism=3) as item:
        each = double(n=item)
    return total(numbers=Collected(each.output)).output


@dsl.pipeline(name="loop-of-objects")
def loop_of_objects(items: list = [{"name": "a", "sizes": ["1", "2"]}, {"name": "b", "sizes": ["3"]}]) -> str:  # noqa: B006
    with dsl.ParallelFor(items) as item:
        with dsl.ParallelFor(item.sizes) as size:
            each = write(text=size)
        write(text=item.name)
    return join(parts=Collected(each.outputs["out"])).output


@dsl.pipeline(name="condition-in-loop")
def condition_in_loop(least: int = 2) -> int:
    with dsl.ParallelFor([1, 2, 3]) as item:
        with dsl.If(item >= least):
            each = double(n=item)
    return total(numbers=Collected(each.output)).output


@dsl.pipeline
def producers(n: int) -> list[int]:
    with dsl.ParallelFor([1, 2, 3]) as item:
        each = add(a=item, b=n)
    return Collected(each.output)


@dsl.pipeline(name="collected-through-a-pipeline")
def collected_through_a_pipeline() -> int:
    return total(numbers=producers(n=10).output).output


@dsl.component(**STEP)
def split(n: int) -> NamedTuple("Halves", [("low", int), ("high", int), ("names", list), ("share", float)]):
    from collections import namedtuple

    return namedtuple("Halves", "low high names share")(n // 2, n - n // 2, ["a", n], n / 2)


class Outputs(NamedTuple):
    sum: int
    low: int
    share: float


@dsl.pipeline(name="several-outputs")
def several_outputs(n: int = 7) -> Outputs:
    halves = split(n=n)
    summed = add(a=halves.outputs["low"], b=halves.outputs["high"])
    return Outputs(sum=summed.output, low=halves.outputs["low"], share=halves.outputs["share"])


@dsl.pipeline(name="artifacts")
def artifacts(text: str = "some text") -> str:
    written = write(text=text)
    again = write(text="more").after(written)
    return echo(text=f"{read(data=written.output).output} {read(data=again.output).output}").output


@dsl.pipeline(name="text")
def text_in_text(n: int = 3, share: float = 0.5, name: str = 'it\'s {n} "%s" {{x}}') -> str:
    return echo(text=f"{n} {share} {name} {{braces}} %s").output


@dsl.pipeline(name="structures")
def structures(n: int = 3, name: str = "x") -> str:
    first = shown(value={"n": 1, "deep": {"list": [1, 2.5, "a", True]}, "name": name})
    second = shown_list(value=[1, {"a": n}, [name, "b"]])
    return echo(text=f"{first.output} {second.output}").output


@dsl.pipeline(name="quotes")
def quotes(name: str = 'it\'s "x"') -> str:
    with dsl.If(name == "x"):
        same = echo(text="same")
    with dsl.Else():
        other = echo(text=name)
    return dsl.OneOf(same.output, other.output)


@dsl.pipeline(name="one-of-artifacts")
def one_of_artifacts(n: int = 1) -> str:
    with dsl.If(n == 1):
        one = write(text="one")
    with dsl.Elif(n == 2):
        two = write(text="two")
    with dsl.Else():
        many = write(text="many")
    return read(data=dsl.OneOf(one.outputs["out"], two.outputs["out"], many.outputs["out"])).output


@dsl.component(**STEP)
def typed(
    i: int,
    f: float,
    s: str,
    b: bool,
    xs: list,
    d: dict,
    ii: Optional[int] = None,
    ff: float = 1.0,
    ss: Optional[str] = None,
) -> str:
    return repr((i, f, s, b, xs, d, ii, ff, ss))


@dsl.pipeline(name="types")
def types(
    i: int = 3,
    f: float = 2.0,
    s: str = "",
    b: bool = False,
    xs: list = [],  # noqa: B006 - literals of the compiled file
    d: dict = {},  # noqa: B006
    ss: Optional[str] = None,
) -> str:
    return typed(i=i, f=f, s=s, b=b, xs=xs, d=d, ss=ss).output


@dsl.component(**STEP)
def make_metrics(metrics: Output[Metrics], model: Output[Model]) -> None:
    metrics.log_metric("loss", 0.5)
    model.metadata["framework"] = "none"


@dsl.component(**STEP)
def read_metrics(metrics: Input[Metrics], model: Input[Model]) -> str:
    return f"{metrics.metadata['loss']} {model.metadata['framework']}"


@dsl.pipeline(name="metadata")
def metadata() -> str:
    made = make_metrics()
    return read_metrics(metrics=made.outputs["metrics"], model=made.outputs["model"]).output


SHAPES: list[tuple[Any, dict[str, Any], dict[str, Any], bool]] = [
    (nested_conditions, {}, {"Output": "inner"}, True),
    (nested_conditions, {"name": "y"}, {"Output": "other"}, True),
    (nested_conditions, {"n": 1}, {"Output": "small"}, True),
    (nested_optional, {}, {"Output": "None 1 d|None 2 d|None None d"}, False),  # kfp.local: no null
    (nested_optional, {"text": "t"}, {"Output": "None 1 d|t 2 d|None None d"}, False),
    (loop_over_output, {}, {"Output": 20}, False),  # kfp.local: the collected integers are floats
    (nested_loops, {}, {"Output": "[[11, 21, 31], [12, 22, 32]]"}, False),
    (loop_of_objects, {}, {"Output": "1+2+3"}, False),
    (condition_in_loop, {}, {"Output": 10}, False),
    (condition_in_loop, {"least": 4}, {"Output": 0}, False),
    (collected_through_a_pipeline, {}, {"Output": 36}, False),
    (several_outputs, {}, {"low": 3, "share": 3.5, "sum": 7}, True),
    (artifacts, {}, {"Output": "some text/9 more/4"}, False),
    (text_in_text, {}, {"Output": '3 0.5 it\'s {n} "%s" {{x}} {braces} %s'}, False),  # kfp.local: 3.0
    (
        structures,
        {"name": 'a "b"'},
        {
            "Output": "{'deep': {'list': [1, 2.5, 'a', True]}, 'n': 1, 'name': 'a \"b\"'} "
            "[1, {'a': '3'}, ['a \"b\"', 'b']]"
        },
        False,
    ),  # kfp.local: floats, and no placeholders in lists
    (quotes, {}, {"Output": 'it\'s "x"'}, False),  # kfp.local: neither branch
    (one_of_artifacts, {"n": 2}, {"Output": "two/3"}, False),  # kfp.local: OneOf takes parameters only
    (one_of_artifacts, {"n": 3}, {"Output": "many/4"}, False),
    (types, {}, {"Output": "(3, 2.0, '', False, [], {}, None, 1.0, None)"}, False),
    (
        types,
        {"i": -1, "f": 1e300, "s": "ü\n", "b": True, "xs": [1], "d": {"a": 1}, "ss": "x"},
        {"Output": "(-1, 1e+300, 'ü\\n', True, [1], {'a': 1}, None, 1.0, 'x')"},
        False,
    ),  # kfp.local: [1.0]
    (metadata, {}, {"Output": "0.5 none"}, True),
]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: f"{shape[0].name}-{len(shape[1])}")
def test_a_pipeline_has_the_expected_outputs_and_those_of_kfp_local(
    execute: Execute, tmp_path: Path, shape: tuple[Any, ...]
) -> None:
    pipeline, parameters, expected, is_same_in_kfp_local = shape
    record = execute(pipeline, parameters)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert record["outputs"]["parameters"] == expected
    assert all(type(value) is type(expected[name]) for name, value in record["outputs"]["parameters"].items())
    if is_same_in_kfp_local:
        assert outputs_of_kfp_local(pipeline, parameters, tmp_path) == expected


def outputs_of_kfp_local(pipeline: Any, parameters: dict[str, Any], tmp_path: Any) -> dict[str, Any]:
    from kfp import local

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        local.init(runner=local.SubprocessRunner(use_venv=False), pipeline_root=str(tmp_path / "kfp"))
        return dict(pipeline(**parameters).outputs)
