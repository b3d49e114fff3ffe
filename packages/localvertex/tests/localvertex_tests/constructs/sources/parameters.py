"""Parameters: every type, defaults, optional ones, constants, and files that components write themselves."""

import math
from typing import Any, NamedTuple, Optional

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP

TEXT = "quote ' and \" and \\ and {{ }} and $HOME\nsecond line, größer ✓ "


@dsl.component(**STEP)
def square(n: int) -> int:
    return n * n


@dsl.component(**STEP)
def half(x: float) -> float:
    return x / 2


@dsl.component(**STEP)
def echo(text: str) -> str:
    return text


@dsl.component(**STEP)
def negate(flag: bool) -> bool:
    return not flag


@dsl.component(**STEP)
def reverse(items: list) -> list:
    return items[::-1]


@dsl.component(**STEP)
def swap(table: dict) -> dict:
    return {"first": table["second"], "second": table["first"]}


@dsl.component(**STEP)
def describe(
    n: int = 3, x: float = 0.5, s: str = "s", b: bool = True, items: list = [1, "a"], d: dict = {"k": 1}
) -> str:
    return repr((n, x, s, b, items, d))


@construct(parameters={"n": -12}, outputs={"Output": 144})
@dsl.pipeline(name="integers")
def integers(n: int) -> int:
    return square(n=n).output


@construct(parameters={"x": 3}, outputs={"Output": 1.5}, kfp_local="Argument type 'NUMBER_INTEGER' is incompatible")
@dsl.pipeline(name="doubles")
def doubles(x: float) -> float:
    return half(x=x).output


@construct(parameters={"text": TEXT}, outputs={"Output": TEXT})
@dsl.pipeline(name="strings")
def strings(text: str) -> str:
    return echo(text=echo(text=text).output).output


@construct(parameters={"flag": False}, outputs={"Output": True})
@dsl.pipeline(name="booleans")
def booleans(flag: bool) -> bool:
    return negate(flag=flag).output


@construct(
    parameters={"items": [1, 2.5, "a", None, [True]]},
    outputs={"Output": [[True], None, "a", 2.5, 1]},
    kfp_local="Value must be one of the following types",
)
@dsl.pipeline(name="lists")
def lists(items: list) -> list:
    return reverse(items=items).output


@construct(
    parameters={"table": {"first": 1, "second": {"deep": [2, {"x": 3}]}}},
    outputs={"Output": {"first": {"deep": [2, {"x": 3}]}, "second": 1}},
)
@dsl.pipeline(name="structs")
def structs(table: dict) -> dict:
    return swap(table=table).output


@construct(
    outputs={"Output": "(3, 0.5, 's', True, [1, 'a'], {'k': 1})"},
    kfp_local={"Output": "(3, 0.5, 's', True, [1.0, 'a'], {'k': 1.0})"},
)
@dsl.pipeline(name="defaults-of-components")
def defaults_of_components() -> str:
    return describe().output


def _described_output(document: dict[str, Any]) -> None:
    document["components"]["comp-describe"]["outputDefinitions"]["parameters"]["Output"]["description"] = "Text."


@construct(edit=_described_output, parameters={"b": False}, outputs={"Output": "(4, 2.0, '', False, [], {'a': {}})"})
@dsl.pipeline(name="defaults-of-pipelines")
def defaults_of_pipelines(
    n: int = 4,
    x: float = 2.0,
    s: str = "",
    b: bool = True,
    items: list = [],
    d: dict = {"a": {}},
) -> str:
    """Describes its parameters.

    Args:
        n: An integer, described.

    Returns:
        Text.
    """
    return describe(n=n, x=x, s=s, b=b, items=items, d=d).output


@construct(
    outputs={"Output": "(-1, 1.5, 'é', False, [[1]], {'a': [{}]})"},
    kfp_local={"Output": "(-1, 1.5, 'é', False, [[1.0]], {'a': [{}]})"},
)
@dsl.pipeline(name="constants")
def constants() -> str:
    return describe(n=-1, x=1.5, s="é", b=False, items=[[1]], d={"a": [{}]}).output


@dsl.component(**STEP)
def optional(n: Optional[int] = None, s: Optional[str] = None, d: Optional[dict] = None) -> str:
    return repr((n, s, d))


def _null(document: dict[str, Any]) -> None:
    document["root"]["dag"]["tasks"]["optional"]["inputs"]["parameters"]["n"]["runtimeValue"] = {"constant": None}


@construct(
    edit=_null,
    parameters={"s": "given"},
    outputs={"none": "(None, None, None)", "some": "(1, 'given', None)"},
    kfp_local="Unknown value type",
)
@dsl.pipeline(name="optional-parameters")
def optional_parameters(s: Optional[str] = None, d: Optional[dict] = None) -> NamedTuple(
    "O", [("none", str), ("some", str)]
):
    outputs = NamedTuple("O", [("none", str), ("some", str)])
    return outputs(none=optional(n=5).output, some=optional(n=1, s=s, d=d).output)


@dsl.component(**STEP)
def several(n: int) -> NamedTuple("Several", [("n", int), ("text", str), ("items", list)]):
    return n + 1, f"n is {n}", [n]


@construct(outputs={"n": 3, "text": "n is 2", "items": [1]})
@dsl.pipeline(name="several-outputs")
def several_outputs() -> NamedTuple("Several", [("n", int), ("text", str), ("items", list)]):
    first = several(n=1)
    second = several(n=first.outputs["n"])
    outputs = NamedTuple("Several", [("n", int), ("text", str), ("items", list)])
    return outputs(n=second.outputs["n"], text=second.outputs["text"], items=first.outputs["items"])


@dsl.component(**STEP)
def write(number: dsl.OutputPath(int), flag: dsl.OutputPath(bool), table: dsl.OutputPath(dict), s: dsl.OutputPath(str)):
    from pathlib import Path

    for path, text in ((number, "7"), (flag, "True"), (table, '{"a": 1}'), (s, "1")):
        Path(path).write_text(text)


class Written(NamedTuple):
    number: int
    flag: bool
    table: dict
    s: str


@construct(outputs={"number": 7, "flag": True, "table": {"a": 1}, "s": "1"})
@dsl.pipeline(name="parameter-files")
def parameter_files() -> Written:
    done = write().outputs
    return Written(number=done["number"], flag=done["flag"], table=done["table"], s=done["s"])


@construct(
    parameters={"n": 3, "x": 0.25},
    outputs={"Output": "n=3 x=0.25 square=9 b=true"},
    kfp_local={"Output": "n=3.0 x=0.25 square=9.0 b=true"},
)
@dsl.pipeline(name="text-with-values")
def text_with_values(n: int, x: float, b: bool = True) -> str:
    return echo(text=f"n={n} x={x} square={square(n=n).output} b={b}").output


@construct(
    parameters={"n": 3},
    outputs={"Output": {"first": ["a", "3"], "second": "3 and 9"}},
    kfp_local={"Output": {"first": ["a", "3.0"], "second": "3.0 and 9.0"}},
)
@dsl.pipeline(name="values-inside-structs")
def values_inside_structs(n: int) -> dict:
    return swap(table={"first": f"{n} and {square(n=n).output}", "second": ["a", f"{n}"]}).output


def _literals(document: dict[str, Any]) -> None:
    document["root"]["inputDefinitions"]["parameters"]["text"]["literals"] = ["a", "b"]
    document["components"]["comp-echo"]["inputDefinitions"]["parameters"]["text"]["literals"] = ["a", "b"]


@construct(parameters={"text": "b"}, outputs={"Output": "b"}, edit=_literals)
@dsl.pipeline(name="literals")
def literals(text: str = "a") -> str:
    return echo(text=text).output


@dsl.component(**STEP)
def keep(n: int) -> int:
    return n


@construct(
    parameters={"n": 2**53 + 1},
    outputs={"Output": 2**53},
    warnings=("stores numbers as doubles",),
)
@dsl.pipeline(name="integers-beyond-doubles")
def integers_beyond_doubles(n: int) -> int:
    return keep(n=n).output


@dsl.component(**STEP)
def small() -> float:
    return 5e-324


@construct(outputs={"Output": math.ulp(0.0)})
@dsl.pipeline(name="smallest-double")
def smallest_double() -> float:
    return small().output


def _without_expected_type(document: dict[str, Any]) -> None:
    """Leave the type of the component's input to the deprecated field, as kfp 1.8 writes it."""
    definition = document["components"]["comp-square"]["inputDefinitions"]["parameters"]["n"]
    definition["type"] = "INT"
    del definition["parameterType"]


@construct(outputs={"Output": 9}, edit=_without_expected_type, kfp_local="want type <class 'int'>")
@dsl.pipeline(name="deprecated-type")
def deprecated_type() -> int:
    return square(n=3).output
