"""Settings of tasks: caching, variables, resources, accelerators, names and images."""

from typing import Any

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP


@dsl.component(**STEP)
def echo(text: str) -> str:
    return text


@dsl.component(**STEP)
def variable(name: str) -> str:
    import os

    return os.environ.get(name, "none")


_NO_EFFECT = "CPU, memory and accelerator settings of steps have no effect here"


@construct(outputs={"Output": "a"}, states={"echo-2": "SKIPPED"}, uses_cache=True)
@dsl.pipeline(name="caching")
def caching() -> str:
    first = echo(text="a").set_caching_options(True, cache_key="own-key")
    second = echo(text=first.output).set_caching_options(True, cache_key="own-key")
    return echo(text=second.output).set_caching_options(False).output


@construct(outputs={"Output": "one two"})
@dsl.pipeline(name="variables-of-a-step")
def variables_of_a_step() -> str:
    return variable(name="FIRST").set_env_variable("FIRST", "one two").output


@construct(outputs={"Output": "a"}, warnings=(_NO_EFFECT,))
@dsl.pipeline(name="resources")
def resources(memory: str = "3G") -> str:
    first = echo(text="a").set_cpu_request("500m").set_cpu_limit("1").set_memory_request("1G").set_memory_limit("2G")
    return echo(text=first.output).set_memory_limit(memory).output


@construct(outputs={"Output": "a"}, warnings=(_NO_EFFECT,))
@dsl.pipeline(name="accelerators")
def accelerators() -> str:
    return echo(text="a").set_accelerator_type("NVIDIA_TESLA_T4").set_accelerator_limit(1).output


@construct(outputs={"Output": "a"}, warnings=(_NO_EFFECT,))
@dsl.pipeline(name="accelerators-from-a-parameter")
def accelerators_from_a_parameter(kind: str = "NVIDIA_L4", count: int = 1) -> str:
    return echo(text="a").set_accelerator_type(kind).set_accelerator_limit(count).output


@construct(outputs={"Output": "a"})
@dsl.pipeline(name="names", display_name="A name, displayed", description="What it does.")
def names() -> str:
    return echo(text="a").set_display_name("A step, displayed").output


@construct(outputs={"Output": "a"})
@dsl.pipeline(name="another-image", pipeline_root="gs://bucket/root")
def another_image() -> str:
    return echo(text="a").set_container_image("registry.example/other:1").output


def _unknown_resource(document: dict[str, Any]) -> None:
    container = document["deploymentSpec"]["executors"]["exec-echo"]["container"]
    container["resources"] = {"cpuLimit": 1.0, "gpuLimit": 1.0}


@construct(refused="gpuLimit", edit=_unknown_resource, kfp_local="gpuLimit")
@dsl.pipeline(name="unknown-resource")
def unknown_resource() -> str:
    return echo(text="a").output


def _selected(document: dict[str, Any]) -> None:
    task = document["root"]["dag"]["tasks"]["echo"]
    task["inputs"]["parameters"]["text"]["parameterExpressionSelector"] = 'parseJson(string_value)["a"][1]'


@construct(
    parameters={"table": {"a": [1, 2.5]}},
    outputs={"Output": "2.5"},
    edit=_selected,
    kfp_local={"Output": '{"a": [1.0, 2.5]}'},
)
@dsl.pipeline(name="selected-part")
def selected_part(table: dict) -> str:
    return echo(text=f"{table}").output
