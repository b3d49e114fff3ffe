"""Conditions: If, Elif, Else and OneOf, with every operator and over every type."""

from typing import Any

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP


@dsl.component(**STEP)
def say(text: str) -> str:
    return text


@dsl.component(**STEP)
def number() -> int:
    return 7


@dsl.component(**STEP)
def write(text: str, data: dsl.Output[dsl.Dataset]) -> None:
    with open(data.path, "w") as file:
        file.write(text)


@dsl.component(**STEP)
def read(data: dsl.Input[dsl.Dataset]) -> str:
    return open(data.path).read()


_SKIPPED = "NOT_TRIGGERED"


@construct(
    parameters={"n": 7},
    outputs={"Output": "equal"},
    states={
        "condition-branches-1/condition-2": _SKIPPED,
        "condition-branches-1/condition-4": _SKIPPED,
    },
)
@dsl.pipeline(name="one-of-parameters")
def one_of_parameters(n: int) -> str:
    made = number()
    with dsl.If(made.output > n):
        greater = say(text="greater")
    with dsl.Elif(made.output == n):
        equal = say(text="equal")
    with dsl.Else():
        less = say(text="less")
    return dsl.OneOf(greater.output, equal.output, less.output)


@construct(
    outputs={"Output": "second"},
    states={"condition-branches-1/condition-2": _SKIPPED},
    kfp_local="Expected 1 artifact in ArtifactSelectorSpec",
)
@dsl.pipeline(name="one-of-artifacts")
def one_of_artifacts(first: bool = False) -> str:
    with dsl.If(first == True):
        one = write(text="first")
    with dsl.Else():
        two = write(text="second")
    return read(data=dsl.OneOf(one.outputs["data"], two.outputs["data"])).output


@construct(
    parameters={"text": "it's", "n": 3, "x": 0.5},
    states={
        "condition-4": _SKIPPED,
        "condition-6": _SKIPPED,
        "condition-9": _SKIPPED,
    },
    tasks={
        "condition-1/say": {"Output": "=="},
        "condition-2/say-2": {"Output": "!="},
        "condition-3/say-3": {"Output": "<="},
        "condition-5/say-5": {"Output": ">="},
        "condition-7/say-7": {"Output": ">"},
        "condition-8/say-8": {"Output": "<"},
    },
)
@dsl.pipeline(name="operators")
def operators(text: str, n: int, x: float, flag: bool = True) -> None:
    conditions = [flag == True, text != "other", n <= 3, n < 3, x >= 0.5, x > 0.5, n > -4, x < 1, text == "it"]
    names = ["==", "!=", "<=", "<", ">=", ">", ">", "<", "=="]
    for condition, name in zip(conditions, names, strict=True):
        with dsl.If(condition):
            say(text=name)


@construct(
    states={"condition-1/condition-3": _SKIPPED, "condition-4": _SKIPPED},
    tasks={"condition-1/condition-2/say": {"Output": "inner"}},
)
@dsl.pipeline(name="nested-conditions")
def nested_conditions(n: int = 2) -> None:
    with dsl.If(n > 1):
        with dsl.If(n > 0):
            say(text="inner")
        with dsl.If(n > 2):
            say(text="never")
    with dsl.If(n > 5):
        with dsl.If(n > 1):
            say(text="never")


@construct(
    states={"condition-1": _SKIPPED},
    tasks={"say-2": {"Output": "beside"}},
)
@dsl.pipeline(name="false-condition")
def false_condition(n: int = 2) -> None:
    with dsl.If(n > 5):
        say(text="never")
    say(text="beside")


@construct(
    states={"for-loop-2/0/condition-3": _SKIPPED, "for-loop-2/2/condition-3": _SKIPPED},
    tasks={"for-loop-2/1/condition-3/say": {"Output": "2"}},
)
@dsl.pipeline(name="condition-in-a-loop")
def condition_in_a_loop() -> None:
    with dsl.ParallelFor([1, 2, 3]) as item:
        with dsl.If(item == 2):
            say(text=f"{item}")


def _invalid(document: dict[str, Any]) -> None:
    document["root"]["dag"]["tasks"]["condition-1"]["triggerPolicy"]["condition"] = "inputs.parameter_values['n'] === 1"


@construct(refused="is not valid CEL", edit=_invalid, kfp_local={})
@dsl.pipeline(name="condition-that-is-not-cel")
def condition_that_is_not_cel(n: int = 1) -> None:
    with dsl.If(n == 1):
        say(text="never")


@construct(refused="is not valid CEL", kfp_local={})
@dsl.pipeline(name="condition-with-a-quote")
def condition_with_a_quote(text: str = "it's") -> None:
    with dsl.If(text == "it's"):
        say(text="quoted")
