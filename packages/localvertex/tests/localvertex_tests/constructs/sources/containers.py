"""Container components: placeholders in commands, IfPresent, Concat, and files that commands write."""

from typing import Any

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP

IMAGE = "python:3.11"
_ONLY_DOCKER = "only supports running Lightweight Python Components"
"""Message of kfp.local's SubprocessRunner for any container component."""
_PRINT = 'printf "%s|" "$@" > "$0"'
"""A script that writes its arguments to the file that it is named after."""


@dsl.container_component
def inputs(n: int, x: float, s: str, b: bool, items: list, d: dict, out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image=IMAGE, command=["bash", "-c", _PRINT, out], args=[n, x, s, b, items, d])


@construct(outputs={"Output": '3|0.5|it\'s "x"|true|[1, {"a": 2}]|{"k": 1.5}|'}, kfp_local=_ONLY_DOCKER)
@dsl.pipeline(name="values-in-a-command")
def values_in_a_command(s: str = 'it\'s "x"') -> str:
    return inputs(n=3, x=0.5, s=s, b=True, items=[1, {"a": 2}], d={"k": 1.5}).output


@dsl.container_component
def if_present(out: dsl.OutputPath(str), name: str = None, other: str = None) -> dsl.ContainerSpec:
    given = dsl.IfPresentPlaceholder(input_name="name", then=["--name", name], else_=["--anonymous"])
    without_else = dsl.IfPresentPlaceholder(input_name="other", then=[dsl.ConcatPlaceholder(["--other=", other])])
    return dsl.ContainerSpec(image=IMAGE, command=["bash", "-c", _PRINT, out], args=[given, without_else, "end"])


@construct(
    tasks={
        "if-present": {"out": "--anonymous|end|"},
        "if-present-2": {"out": "--name|you|--other=more|end|"},
    },
    kfp_local=_ONLY_DOCKER,
)
@dsl.pipeline(name="present-inputs")
def if_present_pipeline() -> None:
    if_present()
    if_present(name="you", other="more")


@dsl.container_component
def concat(a: str, n: int, out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    inner = dsl.ConcatPlaceholder(["<", n, ">"])
    return dsl.ContainerSpec(
        image=IMAGE, command=["bash", "-c", _PRINT, out], args=[dsl.ConcatPlaceholder([a, "-", inner])]
    )


@construct(outputs={"Output": "x-<2>|"}, kfp_local=_ONLY_DOCKER)
@dsl.pipeline(name="concatenation")
def concat_pipeline() -> str:
    return concat(a="x", n=2).output


@dsl.container_component
def files(data: dsl.Output[dsl.Dataset], count: dsl.OutputPath(int)) -> dsl.ContainerSpec:
    script = 'printf text > "$0"; printf 4 > "$1"; test "$0" = "$2"'
    return dsl.ContainerSpec(image=IMAGE, command=["bash", "-ec", script, data.path, count, data.uri])


@dsl.container_component
def read_file(data: dsl.Input[dsl.Dataset], n: int, out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    script = 'cat "$0" > "$2"; printf " %s" "$1" >> "$2"; test "$0" = "$3"'
    return dsl.ContainerSpec(image=IMAGE, command=["bash", "-ec", script, data.path, n, out, data.uri])


@construct(outputs={"Output": "text 4"}, kfp_local=_ONLY_DOCKER)
@dsl.pipeline(name="files-of-commands")
def files_of_commands() -> str:
    made = files().outputs
    return read_file(data=made["data"], n=made["count"]).output


@dsl.component(**STEP)
def describe_artifact(data: dsl.Output[dsl.Dataset]) -> None:
    data.metadata["rows"] = 3
    data.metadata["labels"] = {"kind": "test"}


@dsl.container_component
def metadata(data: dsl.Input[dsl.Dataset], out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(
        image=IMAGE, command=["bash", "-c", _PRINT, out], args=[data.metadata["rows"], data.metadata]
    )


@construct(outputs={"Output": '3|{"rows": 3, "labels": {"kind": "test"}}|'}, kfp_local=_ONLY_DOCKER)
@dsl.pipeline(name="metadata-in-a-command")
def metadata_in_a_command() -> str:
    return metadata(data=describe_artifact().outputs["data"]).output


@dsl.container_component
def executor_output(n: int, data: dsl.Output[dsl.Dataset], text: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    """Write the executor output itself: a parameter and an artifact's metadata."""
    script = (
        'printf \'{"parameterValues": {"text": "by file"}, "artifacts": {"data": {"artifacts": '
        '[{"metadata": {"rows": %s}}]}}}\' "$1" > "$0"'
    )
    path = dsl.PIPELINE_TASK_EXECUTOR_OUTPUT_PATH_PLACEHOLDER
    return dsl.ContainerSpec(image=IMAGE, command=["bash", "-ec", script, path, n])


@construct(outputs={"Output": '5|{"rows": 5}|'}, kfp_local=_ONLY_DOCKER)
@dsl.pipeline(name="executor-output-of-a-command")
def executor_output_of_a_command() -> str:
    return metadata(data=executor_output(n=5).outputs["data"]).output


@dsl.container_component
def executor_input(n: int, out: dsl.OutputPath(int)) -> dsl.ContainerSpec:
    script = (
        "import json, sys; given = json.loads(sys.argv[1])['inputs']['parameterValues']; "
        "open(sys.argv[2], 'w').write(str(given['n']))"
    )
    whole = dsl.PIPELINE_TASK_EXECUTOR_INPUT_PLACEHOLDER
    return dsl.ContainerSpec(image=IMAGE, command=["python3", "-c", script, whole, out])


@construct(outputs={"Output": 6}, kfp_local=_ONLY_DOCKER)
@dsl.pipeline(name="executor-input-of-a-command")
def executor_input_of_a_command() -> int:
    return executor_input(n=6).output


@dsl.container_component
def variables(out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image=IMAGE, command=["bash", "-c", 'printf "%s" "$FIRST $SECOND" > "$0"', out])


@construct(outputs={"Output": "one two=2"}, kfp_local=_ONLY_DOCKER)
@dsl.pipeline(name="variables-of-a-command")
def variables_of_a_command() -> str:
    return variables().set_env_variable("FIRST", "one").set_env_variable("SECOND", "two=2").output


@dsl.container_component
def no_command() -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="registry.example/tool")


@construct(refused="the container has no command", kfp_local=_ONLY_DOCKER)
@dsl.pipeline(name="image-without-a-command")
def image_without_a_command() -> None:
    no_command()


def _lifecycle(document: dict[str, Any]) -> None:
    container = document["deploymentSpec"]["executors"]["exec-variables"]["container"]
    container["lifecycle"] = {"preCacheCheck": {"command": ["true"], "args": ["now"]}}


@construct(refused="life-cycle hooks do not run locally", edit=_lifecycle, kfp_local=_ONLY_DOCKER)
@dsl.pipeline(name="lifecycle")
def lifecycle() -> None:
    variables()
