"""Pipelines for kfp 2.0 to 2.14; run by each of these versions: `python kfp_2.py FOLDER`."""

import sys
from pathlib import Path
from typing import Dict, List, NamedTuple

import kfp
from kfp import compiler, dsl

MINOR = int(kfp.__version__.split(".")[1])
OPTIONS = {"base_image": "python:3.11", **({"install_kfp_package": False} if MINOR >= 4 else {})}
"""The executor of kfp 2.0 has another name, so its steps install their kfp."""


@dsl.container_component
def write(
    text: str,
    number: int,
    table: Dict[str, float],
    said: dsl.OutputPath(str),
    data: dsl.Output[dsl.Dataset],
    ratio: float = 0.5,
    optional: str = "",
):
    script = 'printf "%s" "$0|$1|$2|$3|${*:6}" > "$4"; printf "%s" "$0" > "$5"'
    return dsl.ContainerSpec(
        image="python:3.11",
        command=["bash", "-ec", script],
        args=[
            *(text, number, ratio, table, said, data.path),
            dsl.ConcatPlaceholder(["--text=", text]),
            dsl.IfPresentPlaceholder(input_name="optional", then=["--optional", optional], else_=["--none"]),
        ],
    )


@dsl.container_component
def read(data: dsl.Input[dsl.Dataset], text: dsl.OutputPath(str)):
    return dsl.ContainerSpec(image="python:3.11", command=["bash", "-ec", 'cat "$0" > "$1"', data.path, text])


@dsl.component(**OPTIONS)
def describe(text: str, n: int, x: float, flag: bool, items: list, table: dict) -> str:
    return repr((text, n, x, flag, items, table))


@dsl.component(**OPTIONS)
def several(n: int) -> NamedTuple("Several", [("n", int), ("text", str)]):
    return n + 1, f"n is {n}"


@dsl.component(**OPTIONS)
def produce(text: str, data: dsl.Output[dsl.Dataset], metrics: dsl.Output[dsl.Metrics]):
    with open(data.path, "w") as file:
        file.write(text)
    data.metadata["rows"] = 3
    metrics.log_metric("accuracy", 0.5)


@dsl.component(**OPTIONS)
def consume(data: dsl.Input[dsl.Dataset]) -> str:
    return f"{open(data.path).read()} {int(data.metadata['rows'])}"


@dsl.component(**OPTIONS)
def join(parts: List[str]) -> str:
    return "+".join(parts)


@dsl.component(**OPTIONS)
def join_data(parts: dsl.Input[List[dsl.Dataset]]) -> str:
    return "+".join(open(each.path).read() for each in parts)


@dsl.component(**OPTIONS)
def status(final: dsl.PipelineTaskFinalStatus) -> str:
    return f"{final.state} {final.pipeline_task_name}"


@dsl.pipeline(name="inner")
def inner(text: str, number: int = 7) -> str:
    made = write(text=text, number=number, table={"b": 1.0})
    return read(data=made.outputs["data"]).output


@dsl.pipeline(name=f"kfp-2-{MINOR}-commands")
def commands(text: str = "it's", number: int = 3) -> str:
    made = write(text=text, number=number, ratio=1.5, table={"a": 2.5}).set_retry(num_retries=1)
    with dsl.Condition(number > 2, name="more"):
        write(text=made.outputs["said"], number=4, table={"c": 1.0}, optional="given")
    with dsl.Condition(number > 5, name="never"):
        read(data=made.outputs["data"])
    with dsl.ParallelFor(["a", "b"], parallelism=1) as item:
        write(text=item, number=1, table={"d": 1.0}).set_display_name("Each item")
    dsl.importer(artifact_uri="https://host.example/data.csv", artifact_class=dsl.Dataset, metadata={"rows": 3})
    return inner(text=f"{text} {number}").output


@dsl.pipeline(name=f"kfp-2-{MINOR}-steps")
def steps(text: str = "it's", n: int = 3, x: float = 0.5, flag: bool = True):
    with dsl.ExitHandler(status()):
        describe(text=text, n=n, x=x, flag=flag, items=[1, "a"], table={"k": {"deep": 1.5}})
        first = several(n=n)
        several(n=first.outputs["n"])
        consume(data=produce(text=first.outputs["text"]).outputs["data"])


def later_steps() -> None:
    """Define what kfp 2.4 has and 2.0 has not: Elif, Else, OneOf and Collected."""

    @dsl.pipeline(name=f"kfp-2-{MINOR}-flow")
    def flow(n: int = 2) -> NamedTuple("Flow", [("chosen", str), ("joined", str), ("data", str)]):
        with dsl.If(n == 1):
            one = several(n=1)
        with dsl.Elif(n == 2):
            two = several(n=2)
        with dsl.Else():
            other = several(n=3)
        chosen = dsl.OneOf(one.outputs["text"], two.outputs["text"], other.outputs["text"])
        with dsl.ParallelFor([1, 2]) as item:
            each = several(n=item)
            made = produce(text=each.outputs["text"])
        outputs = NamedTuple("Flow", [("chosen", str), ("joined", str), ("data", str)])
        return outputs(
            chosen=chosen,
            joined=join(parts=dsl.Collected(each.outputs["text"])).output,
            data=join_data(parts=dsl.Collected(made.outputs["data"])).output,
        )

    write_file(flow, "flow")


def write_file(pipeline: object, name: str) -> None:
    path = Path(sys.argv[1]) / f"kfp_2_{MINOR}_{name}.json"
    compiler.Compiler().compile(pipeline, str(path))


if __name__ == "__main__":
    write_file(commands, "commands")
    write_file(steps, "steps")
    if MINOR >= 4:
        later_steps()
