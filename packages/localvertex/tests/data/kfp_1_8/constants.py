"""The source of constants.json, compiled by kfp 1.8.22: constants of each type, conditions, loops and an importer."""

# ruff: noqa: B006

from kfp.v2 import compiler, dsl
from kfp.v2.dsl import Dataset, Input, component


@component(base_image="python:3.11")
def show(
    text: str,
    number: int = 7,
    ratio: float = 0.5,
    flag: bool = True,
    items: list = [1, 2],
    table: dict = {"k": 1},
) -> float:
    return ratio * number


@component(base_image="python:3.11")
def read(data: Input[Dataset]) -> str:
    with open(data.path) as file:
        return file.read()


@dsl.pipeline(name="constants")
def constants(uri: str, word: str = "hello", n: int = 3, ratio: float = 2.0, on: bool = True, items: list = [4, 5]):
    with dsl.ExitHandler(show(text="bye")):
        first = show(text=f"{word} there", number=n, ratio=ratio, flag=on, items=[], table={"x": {"y": 1.5}})
        with dsl.Condition(first.output > 5, name="large"):
            read(data=dsl.importer(artifact_uri=uri, artifact_class=Dataset, reimport=True).output)
            with dsl.Condition(n >= 4, name="never"):
                show(text="never")
        with dsl.Condition(word == "hello", name="greeting"):
            read(data=dsl.importer(artifact_uri="/imported", artifact_class=Dataset, reimport=False).output)
    with dsl.ParallelFor([{"p": 1, "q": "s"}, {"p": 2, "q": "t"}]) as item:
        show(text=item.q, number=item.p, flag=False)
    with dsl.ParallelFor(items) as item:
        show(text="loop", number=item)


compiler.Compiler().compile(constants, "constants.json")
