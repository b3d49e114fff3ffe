"""Container components: their command, its structures and placeholders, and programs that are not installed."""

import json
import shlex
import sys
import tomllib
from pathlib import Path

import pytest
from kfp import dsl
from kfp.dsl import ConcatPlaceholder, Dataset, IfPresentPlaceholder, Input, Output, OutputPath

import localvertex
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask, ReadLog

SHOW = "import json, sys; print(json.dumps(sys.argv[1:]))"


@dsl.component(**STEP)
def length(data: Input[Dataset], text: str) -> str:
    with open(data.path) as file:
        return f"{text}:{file.read()}"


@dsl.container_component
def write(name: str, count: int, data: Output[Dataset], text: OutputPath(str)) -> dsl.ContainerSpec:
    script = (
        'mkdir -p "$(dirname "$2")"; printf "%s" "$0 $1" > "$2"; printf "%s" "$1 of $0" > "$3"; pwd; echo "$GREETING"'
    )
    return dsl.ContainerSpec(image="alpine", command=["sh", "-ec", script], args=[name, count, data.path, text])


@dsl.pipeline(name="shell")
def shell(name: str = 'it\'s $HOME "quoted"') -> None:
    written = write(name=name, count=3).set_env_variable("GREETING", "hello")
    length(data=written.outputs["data"], text=written.outputs["text"])


def test_a_command_gets_its_inputs_and_leaves_its_outputs(
    execute: Execute, task: FindTask, log_text: ReadLog, work_dir: Path
) -> None:
    record = execute(shell, run_id="shell")
    assert record["state"] == "SUCCEEDED"
    name = 'it\'s $HOME "quoted"'
    assert task(record, "length")["outputs"]["parameters"]["Output"] == f"3 of {name}:{name} 3"
    assert log_text(record, task(record, "write")) == f"{work_dir / 'shell' / 'write'}\nhello\n"
    assert len([text for text in record["warnings"] if "not in their images" in text and "commands" in text]) == 1


@dsl.container_component
def show(
    text: str,
    number: int,
    share: float,
    flag: bool,
    names: list,
    options: dict,
    maybe: str = None,  # noqa: RUF013 - kfp's way to say optional
    other: str = "default",
) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(
        image="tools",
        command=["python", "-c", SHOW, IfPresentPlaceholder(input_name="maybe", then=["--maybe", maybe])],
        args=[
            f"{text}/{number}",
            ConcatPlaceholder(["--share=", share, ",", flag]),
            names,
            options,
            IfPresentPlaceholder(
                input_name="other", then=["--other", ConcatPlaceholder(["<", other, ">"])], else_=["--no-other"]
            ),
            IfPresentPlaceholder(input_name="maybe", then="there", else_="not there"),
            dsl.PIPELINE_JOB_NAME_PLACEHOLDER,
        ],
    )


@dsl.pipeline(name="shown")
def shown(text: str, maybe: str = None) -> None:  # noqa: RUF013
    values = {"number": 3, "share": 0.5, "flag": True, "names": [1, "b", text], "options": {"deep": [text, {"n": 2}]}}
    show(text=text, **values)
    show(text=f"<{text}>", maybe=maybe, other="", **values)
    show(text=text, maybe=f"{text}!", **values)


TEXT = 'a "b"\' \\ {{$.pipeline_root}} ü'


@pytest.mark.parametrize("maybe", [None, "x y"])
def test_placeholders_and_structures_may_be_anywhere_in_a_command(
    execute: Execute, task: FindTask, log_text: ReadLog, maybe: str | None
) -> None:
    record = execute(shown, {"text": TEXT} | ({"maybe": maybe} if maybe else {}), run_id="shown")
    lines = [json.loads(log_text(record, task(record, name))) for name in ("show", "show-2", "show-3")]
    lists = [json.dumps([1, "b", TEXT]), json.dumps({"deep": [TEXT, {"n": 2}]})]
    common = ["--share=0.5,true", *lists]
    given = ["--maybe", maybe] if maybe else []
    assert lines == [
        [f"{TEXT}/3", *common, "--other", "<default>", "not there", "shown"],
        [*given, f"<{TEXT}>/3", *common, "--other", "<>", "there" if maybe else "not there", "shown"],
        ["--maybe", f"{TEXT}!", f"{TEXT}/3", *common, "--other", "<default>", "there", "shown"],
    ]


@dsl.container_component
def foreign(n: int) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="gcr.io/x/tool:1", command=["no-such-program-here"], args=[n])


@dsl.container_component
def nameless(n: int) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="gcr.io/x/nameless@sha256:00", args=[n])


@dsl.container_component
def inside() -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="gcr.io/x/inside", command=["./run.sh"])


@dsl.component(base_image="python:3.11", target_image="gcr.io/x/target")
def containerized(n: int) -> int:
    return n


@dsl.pipeline(name="foreigners")
def foreigners() -> None:
    foreign(n=3)
    nameless(n=4)
    inside()
    containerized(n=5)


def test_all_containers_without_a_local_program_are_refused_at_once(compiled: Compile, work_dir: Path) -> None:
    with pytest.raises(localvertex.Refused) as refused:
        localvertex.run(compiled(foreigners), options=localvertex.Options(work_dir=work_dir))
    expected = {
        "containerized": ("this is a containerized Python component, whose code is in the image", "gcr.io/x/target"),
        "foreign": ("the program 'no-such-program-here' is not installed locally", "gcr.io/x/tool:1"),
        "inside": ("the program './run.sh' is not installed locally", "gcr.io/x/inside"),
        "nameless": (
            "the container has no command, and the entry point of its image is not known locally",
            "gcr.io/x/nameless@sha256:00",
        ),
    }
    assert sorted(refused.value.reasons) == [
        f"deploymentSpec.executors.exec-{name}.container: {reason} (image {image!r}); "
        f"add --engine docker, or give a local command with --image {image}=COMMAND"
        for name, (reason, image) in expected.items()
    ]
    proposed = tomllib.loads(refused.value.proposal)
    assert {*proposed["image"]} == {image for _, image in expected.values()}
    assert not work_dir.exists()


@dsl.pipeline(name="replaced")
def replaced() -> None:
    foreign(n=3)
    nameless(n=4)


def test_images_can_be_replaced_by_commands(command: Command, compiled: Compile, tmp_path: Path) -> None:
    compiled(replaced)
    here = shlex.join([sys.executable, "-c", SHOW, "prefix"])
    images = ["--image", f"gcr.io/x/tool:1={here} one", "--image", f"gcr.io/x/nameless@sha256:00={here} two=2"]
    done = command("run", "pipeline.json", "--run-id", "r", *images)
    assert done.returncode == 0, done.stdout
    logs = [(tmp_path / "runs" / "r" / name / "log.txt").read_text() for name in ("foreign", "nameless")]
    assert [json.loads(text) for text in logs] == [
        ["prefix", "one", "no-such-program-here", "3"],
        ["prefix", "two=2", "4"],
    ]


@pytest.mark.parametrize(
    ("option", "message"),
    [
        ("gcr.io/x/tool:1", "expected IMAGE=COMMAND"),
        ("gcr.io/x/tool:1=", "expected IMAGE=COMMAND"),
        ("=true", "expected IMAGE=COMMAND"),
        ("gcr.io/x/tool:1='open", "No closing quotation"),
        (
            "other=true",
            "no step uses this container image; the pipeline uses: gcr.io/x/nameless@sha256:00, gcr.io/x/tool:1",
        ),
    ],
)
def test_an_invalid_image_option_is_refused(command: Command, compiled: Compile, option: str, message: str) -> None:
    compiled(replaced)
    done = command("run", "pipeline.json", "--image", option)
    assert done.returncode == 2
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1


@dsl.container_component
def fail() -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="alpine", command=["sh", "-c", "echo last words; exit 3"])


@dsl.pipeline(name="ends")
def ends() -> None:
    fail()


def test_a_command_fails_with_its_code(compiled: Compile, execute: Execute, task: FindTask) -> None:
    record = execute(compiled(ends))
    assert (task(record, "fail")["exit_code"], task(record, "fail")["error"]) == (
        3,
        "exit code 3; last line of its log: last words",
    )
