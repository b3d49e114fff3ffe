"""Loops: ParallelFor over values and artifacts, nested, limited and collected."""

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP


@dsl.component(**STEP)
def square(n: int) -> int:
    return n * n


@dsl.component(**STEP)
def add(numbers: list) -> int:
    return int(sum(numbers))


@dsl.component(**STEP)
def numbers() -> list:
    return [3, 4]


@dsl.component(**STEP)
def join(a: str, b: float) -> str:
    return f"{a}:{b}"


@dsl.component(**STEP)
def pair(a: str, b: str) -> str:
    return f"{a}={b}"


@dsl.component(**STEP)
def show(items: list) -> str:
    return repr(items)


@dsl.component(**STEP)
def write(text: str, data: dsl.Output[dsl.Dataset]) -> None:
    with open(data.path, "w") as file:
        file.write(text)


@dsl.component(**STEP)
def read(data: dsl.Input[dsl.Dataset]) -> str:
    return open(data.path).read()


@construct(outputs={"Output": 14})
@dsl.pipeline(name="loop-over-constants")
def loop_over_constants() -> int:
    with dsl.ParallelFor([1, 2, 3]) as n:
        squared = square(n=n)
    return add(numbers=dsl.Collected(squared.output)).output


@construct(outputs={"Output": "['a=0.5', 'b=1']"}, kfp_local={"Output": "['a=0.5', 'b=1.0']"})
@dsl.pipeline(name="loop-over-structs")
def loop_over_structs() -> str:
    with dsl.ParallelFor([{"a": "a", "b": 0.5}, {"a": "b", "b": 1}], name="pairs") as item:
        joined = pair(a=item.a, b=item.b)
    return show(items=dsl.Collected(joined.output)).output


@construct(parameters={"items": [5, 6]}, outputs={"Output": 61})
@dsl.pipeline(name="loop-over-a-parameter")
def loop_over_a_parameter(items: list[int] = [1]) -> int:
    with dsl.ParallelFor(items, parallelism=1) as n:
        squared = square(n=n)
    return add(numbers=dsl.Collected(squared.output)).output


@construct(outputs={"Output": 25})
@dsl.pipeline(name="loop-over-an-output")
def loop_over_an_output() -> int:
    with dsl.ParallelFor(numbers().output) as n:
        squared = square(n=n)
    return add(numbers=dsl.Collected(squared.output)).output


@construct(
    tasks={
        "for-loop-2/0/for-loop-4/0/join": {"Output": "a:1.0"},
        "for-loop-2/0/for-loop-4/1/join": {"Output": "a:2.0"},
        "for-loop-2/1/for-loop-4/0/join": {"Output": "b:1.0"},
        "for-loop-2/1/for-loop-4/1/join": {"Output": "b:2.0"},
    },
)
@dsl.pipeline(name="nested-loops")
def nested_loops() -> None:
    with dsl.ParallelFor(["a", "b"], parallelism=2) as outer:
        with dsl.ParallelFor([1.0, 2.0], parallelism=1) as inner:
            join(a=outer, b=inner)


@construct(outputs={"Output": "[['a:1.0', 'a:2.0'], ['b:1.0', 'b:2.0']]"})
@dsl.pipeline(name="nested-loops-collected")
def nested_loops_collected() -> str:
    with dsl.ParallelFor(["a", "b"]) as outer:
        with dsl.ParallelFor([1.0, 2.0]) as inner:
            joined = join(a=outer, b=inner)
    return show(items=dsl.Collected(joined.output)).output


@construct(parameters={"items": []}, outputs={"Output": "[]"}, kfp_local="task 'for-loop-1' not found")
@dsl.pipeline(name="loop-without-items")
def loop_without_items(items: list[str] = ["a"]) -> str:
    with dsl.ParallelFor(items) as item:
        joined = join(a=item, b=1.0)
    return show(items=dsl.Collected(joined.output)).output


@dsl.pipeline(name="collects")
def collects() -> list[dsl.Dataset]:
    with dsl.ParallelFor(["a", "b"]) as item:
        written = write(text=item)
    return dsl.Collected(written.outputs["data"])


@construct(
    tasks={"for-loop-1/0/read": {"Output": "a"}, "for-loop-1/1/read": {"Output": "b"}},
)
@dsl.pipeline(name="loop-over-artifacts")
def loop_over_artifacts() -> None:
    with dsl.ParallelFor(collects().output) as data:
        read(data=data)


@construct(outputs={"Output": [1, 4]})
@dsl.pipeline(name="collected-output-of-the-pipeline")
def collected_output_of_the_pipeline() -> list[int]:
    with dsl.ParallelFor([1, 2]) as n:
        squared = square(n=n)
    return dsl.Collected(squared.output)
