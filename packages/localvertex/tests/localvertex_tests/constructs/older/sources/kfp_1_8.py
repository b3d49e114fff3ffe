"""Pipelines for kfp 1.8 and its v2 compiler; run by that version: `python kfp_1_8.py FOLDER`."""

import sys
from pathlib import Path
from typing import NamedTuple

from kfp import components
from kfp.v2 import compiler, dsl

COMMAND = components.load_component_from_text("""
name: write
inputs:
- {name: text, type: String}
- {name: number, type: Integer}
- {name: ratio, type: Float, default: '0.5'}
- {name: table, type: JsonObject}
- {name: optional, type: String, optional: true}
outputs:
- {name: said, type: String}
- {name: data, type: Dataset}
implementation:
  container:
    image: python:3.11
    command:
    - bash
    - -ec
    - |
      printf '%s' "$0|$1|$2|$3|${*:6}" > "$4"
      printf '%s' "$0" > "$5"
    - {inputValue: text}
    - {inputValue: number}
    - {inputValue: ratio}
    - {inputValue: table}
    - {outputPath: said}
    - {outputPath: data}
    - concat: ['--text=', {inputValue: text}]
    - if: {cond: {isPresent: optional}, then: [--optional, {inputValue: optional}], else: [--none]}
""")

READ = components.load_component_from_text("""
name: read
inputs:
- {name: data, type: Dataset}
outputs:
- {name: text, type: String}
implementation:
  container:
    image: python:3.11
    command: [bash, -ec, 'cat "$0" > "$1"', {inputPath: data}, {outputPath: text}]
""")


@dsl.component(base_image="python:3.11")
def describe(text: str, n: int, x: float, flag: bool, items: list, table: dict) -> str:
    return repr((text, n, x, flag, items, table))


@dsl.component(base_image="python:3.11")
def several(n: int) -> NamedTuple("Several", [("n", int), ("text", str)]):
    return n + 1, f"n is {n}"


@dsl.component(base_image="python:3.11")
def produce(text: str, data: dsl.Output[dsl.Dataset], metrics: dsl.Output[dsl.Metrics]):
    with open(data.path, "w") as file:
        file.write(text)
    data.metadata["rows"] = 3
    metrics.log_metric("accuracy", 0.5)


@dsl.component(base_image="python:3.11")
def consume(data: dsl.Input[dsl.Dataset]) -> str:
    return f"{open(data.path).read()} {int(data.metadata['rows'])}"


@dsl.pipeline(name="kfp-1-8-commands", pipeline_root="gs://bucket/root")
def commands(text: str = "it's", number: int = 3, flag: bool = False):
    made = COMMAND(text=text, number=number, ratio=1.5, table={"a": [1, 2.5]})
    READ(data=made.outputs["data"])
    with dsl.Condition(number > 2, name="more"):
        COMMAND(text=made.outputs["said"], number=4, table={}, optional="given")
    with dsl.Condition(number > 5, name="never"):
        READ(data=made.outputs["data"])
    with dsl.ParallelFor(["a", "b"]) as item:
        COMMAND(text=item, number=1, table={"item": "x"}).set_display_name("Each item")
    imported = dsl.importer(artifact_uri="https://host.example/data.csv", artifact_class=dsl.Dataset, reimport=False)
    imported.set_caching_options(False)


@dsl.pipeline(name="kfp-1-8-steps", pipeline_root="gs://bucket/root")
def steps(text: str = "it's", n: int = 3, x: float = 0.5, flag: bool = True):
    describe(text=text, n=n, x=x, flag=flag, items=[1, "a"], table={"k": {"deep": 1.5}})
    first = several(n=n)
    several(n=first.outputs["n"])
    consume(data=produce(text=first.outputs["text"]).outputs["data"])


if __name__ == "__main__":
    for pipeline in (commands, steps):
        path = Path(sys.argv[1]) / f"kfp_1_8_{pipeline.__name__}.json"
        compiler.Compiler().compile(pipeline_func=pipeline, package_path=str(path))
