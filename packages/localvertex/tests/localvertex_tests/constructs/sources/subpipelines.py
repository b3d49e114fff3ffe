"""Pipelines as tasks of pipelines: inputs, defaults, outputs, and settings of the whole task."""

from typing import NamedTuple

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP


class Two(NamedTuple):
    total: int
    data: dsl.Dataset


@dsl.component(**STEP)
def add(a: int, b: int) -> int:
    return a + b


@dsl.component(**STEP)
def write(n: int, data: dsl.Output[dsl.Dataset]) -> None:
    with open(data.path, "w") as file:
        file.write(str(n))


@dsl.component(**STEP)
def read(data: dsl.Input[dsl.Dataset]) -> str:
    return open(data.path).read()


@dsl.component(**STEP)
def fail() -> None:
    raise ValueError("on purpose")


@dsl.pipeline(name="inner")
def inner(a: int, b: int = 10) -> Two:
    total = add(a=a, b=b)
    return Two(total=total.output, data=write(n=total.output).outputs["data"])


@dsl.pipeline(name="middle")
def middle(n: int) -> int:
    return inner(a=n).outputs["total"]


@dsl.pipeline(name="reads")
def reads(data: dsl.Input[dsl.Dataset], unused: int = 1) -> str:
    return read(data=data).output


@construct(outputs={"total": 12, "text": "12"}, kfp_local="Parent pipeline input argument 'data' not found")
@dsl.pipeline(name="pipeline-in-a-pipeline")
def pipeline_in_a_pipeline() -> NamedTuple("O", [("total", int), ("text", str)]):
    made = inner(a=2)
    outputs = NamedTuple("O", [("total", int), ("text", str)])
    return outputs(total=made.outputs["total"], text=reads(data=made.outputs["data"]).output)


@construct(outputs={"Output": 21})
@dsl.pipeline(name="three-levels")
def three_levels() -> int:
    return add(a=middle(n=1).output, b=middle(n=0).output).output


@construct(parameters={"n": 4}, outputs={"Output": 14})
@dsl.pipeline(name="only-a-pipeline")
def only_a_pipeline(n: int = 3) -> int:
    return middle(n=n).set_display_name("All of it").output


@dsl.pipeline(name="fails")
def fails() -> None:
    fail()


@construct(
    state="FAILED",
    error="on purpose",
    states={"fails": "FAILED", "fails/fail": "FAILED", "add-2": "NOT_TRIGGERED"},
)
@dsl.pipeline(name="failed-pipeline-in-a-pipeline")
def failed_pipeline_in_a_pipeline() -> None:
    add(a=1, b=1)
    add(a=1, b=2).after(fails())
