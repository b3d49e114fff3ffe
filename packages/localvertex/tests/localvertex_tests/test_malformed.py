"""Malformed files: one line, exit code 2, nothing written, no traceback."""

import copy
import json
import os
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.support.documents import fields

import localvertex
from localvertex._base.userinput.reading import MAX_BYTES
from localvertex.runner.engine import open_file
from vertex_testing.runs import STEP, Command


@dsl.component(**STEP)
def echo(text: str) -> str:
    return text


@dsl.pipeline(name="small")
def small(text: str = "x") -> None:
    first = echo(text=text)
    with dsl.If(first.output == "x"):
        echo(text=first.output)


@pytest.fixture(scope="module")
def good(compile_pipeline: Callable[[Any, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Return a valid pipeline, decoded."""
    return json.loads(compile_pipeline(small, tmp_path_factory.mktemp("good") / "p.json").read_text())


def refused(path: Path, work_dir: Path) -> str:
    """Return the message of a refusal; nothing may have been written."""
    with pytest.raises(localvertex.UserError) as caught:
        localvertex.run(path, options=localvertex.Options(work_dir=work_dir))
    text = str(caught.value)
    assert "\n" not in text
    assert not work_dir.exists()
    return text


BOMB = "\n".join(["a0: &a0 [x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12))])
TEXTS = {
    "empty.json": ("", "is empty; expected JSON or YAML"),
    "empty.yaml": ("# nothing", "found 0 documents"),
    "cut.json": ('{"root": {"dag": {', "is not JSON: Expecting property name"),
    "comma.json": ('{\n "a": 1,\n}', "line 3 column 1"),
    "list.json": ("[1, 2]", "expected an object, found list"),
    "number.json": ("42", "expected an object, found int"),
    "null.json": ("null", "expected an object, found NoneType"),
    "twice.json": ('{"root": 1, "root": 2}', "has the key 'root' twice in one mapping; keep one"),
    "nan.json": ('{"root": NaN}', "NaN is not a number in JSON"),
    "infinity.json": ('{"root": -Infinity}', "-Infinity is not a number"),
    "overflow.json": ('{"root": 1e999}', "contains the number inf"),
    "digits.json": ('{"root": ' + "9" * 10_000 + "}", "is not JSON: Exceeds the limit"),
    "deep.json": ("[" * 200_000, "is nested too deeply"),
    "deep-objects.json": ('{"a":' * 200_000, "is nested too deeply"),
    "other.json": ('{"name": "x", "steps": []}', "this is not a compiled pipeline"),
    "tab.yaml": ("root:\n\tdag: 1", "is not YAML: found character that cannot start any token, line 2, column 1"),
    "twice.yaml": ("root: 1\nname: x\nroot: 2", "has the key 'root' twice in one mapping, in lines 1 and 3"),
    "nan.yaml": ("root: .nan", "contains the number nan; expected a finite number"),
    "infinity.yaml": ("root: [-.inf]", "contains the number -inf"),
    "quote.yaml": ('root: "open', "is not YAML: found unexpected end of stream, line 1"),
    "text.yaml": ("just some text", "expected an object, found str"),
    "bomb.yaml": (BOMB, "unfolds to more than 2000000 values through its aliases"),
    "python.yaml": ("root: !!python/object/apply:os.system ['true']", "could not determine a constructor"),
    "date.yaml": ("root: 2026-01-01", "contains '2026-01-01', which is not a JSON value"),
    "binary.yaml": ("root: !!binary aGVsbG8=", "which is not a JSON value; write it in quotes"),
    "three.yaml": ("a: 1\n---\nb: 2\n---\nc: 3", "found 3 documents"),
    "deep.yaml": ("[" * 5_000, "is nested too deeply"),
    "null-byte.yaml": ("root: \0", "is not YAML"),
}


@pytest.mark.parametrize("name", TEXTS)
def test_a_broken_text_is_refused_in_one_line(name: str, tmp_path: Path, work_dir: Path) -> None:
    text, message = TEXTS[name]
    (tmp_path / name).write_text(text)
    found = refused(tmp_path / name, work_dir)
    assert found.startswith(str(tmp_path / name))
    assert message in found


def test_a_path_without_a_readable_file_is_refused(tmp_path: Path, work_dir: Path) -> None:
    assert "does not exist" in refused(tmp_path / "absent.json", work_dir)
    assert "is a folder" in refused(tmp_path, work_dir)
    os.mkfifo(tmp_path / "pipe.json")
    assert "not a regular file" in refused(tmp_path / "pipe.json", work_dir)
    (tmp_path / "image.json").write_bytes(b"\x89PNG\r\n\x1a\n\xff\xfe")
    assert "expected text in UTF-8, found the byte 0x89" in refused(tmp_path / "image.json", work_dir)
    with (tmp_path / "huge.json").open("wb") as file:
        file.truncate(MAX_BYTES + 1)
    assert "larger than 20 MiB" in refused(tmp_path / "huge.json", work_dir)


TASKS = "components comp-condition-1 dag tasks"
EXECUTOR = "deploymentSpec executors exec-echo container"
INPUT = "root dag tasks echo inputs parameters text"
LAUNCHER = "google_cloud_pipeline_components.container.v1.custom_job.launcher"
SCHEMA = {"schemaTitle": "system.Dataset"}

CHANGES: dict[str, tuple[str, Any, str]] = {
    "version": ("schemaVersion", "9.0.0", "schemaVersion is '9.0.0'; expected 2.0.0 or 2.1.0"),
    "no version": ("schemaVersion", None, "schemaVersion is ''; expected 2.0.0 or 2.1.0"),
    "unknown top field": ("extra", 1, "top level: the field 'extra' is unknown"),
    "misspelt field": ("root inputDefinition", {}, "did you mean inputDefinitions?"),
    "root is a list": ("root", [], "root: expected an object, found a list"),
    "root without dag": ("root", {}, "root: expected exactly one of 'dag' and 'executorLabel'"),
    "root is null": ("root", None, "the field 'root' is missing or empty"),
    "both": ("root executorLabel", "exec-echo", "root: expected exactly one of 'dag' and 'executorLabel'"),
    "no name": ("pipelineInfo", {}, "pipelineInfo: the field 'name' is missing or empty"),
    "components is a list": ("components", [1], "components: expected an object, found a list"),
    "component is a string": ("components comp-echo", "x", "components.comp-echo: expected an object, found 'x'"),
    "component is absent": ("components comp-echo", None, "components.comp-echo: expected an object, found None"),
    "type": ("root inputDefinitions parameters text parameterType", "TEXT", "'TEXT' is not one of NUMBER_DOUBLE"),
    "optional": ("root inputDefinitions parameters text isOptional", "yes", "expected true or false, found 'yes'"),
    "path in task name": ("root dag tasks ../../evil", {}, "'../../evil' is not a usable name"),
    "absolute task name": ("root dag tasks /etc", {}, "'/etc' is not a usable name"),
    "empty task name": ("root dag tasks ", {}, "'' is not a usable name"),
    "path in output": ("components comp-echo outputDefinitions parameters ../x", {}, "'../x' is not a usable name"),
    "long name": ("root dag tasks " + "x" * 300, {}, "is not a usable name"),
    "empty producer": (
        INPUT,
        {"taskOutputParameter": {"producerTask": "", "outputParameterKey": "x"}},
        "'producerTask' is missing",
    ),
    "launcher without options": (
        EXECUTOR,
        {"command": ["python3", "-m", LAUNCHER], "args": ["--payload"]},
        "the launcher has no --payload; ",
    ),
    "no component": ("root dag tasks echo componentRef", {}, "the field 'name' is missing"),
    "unknown component": ("root dag tasks echo componentRef name", "comp-x", "there is no component 'comp-x'"),
    "recursion": (f"{TASKS} echo-2 componentRef name", "comp-condition-1", "components contain each other"),
    "circle": ("root dag tasks echo dependentTasks", ["condition-1"], "tasks wait for each other"),
    "waits for itself": ("root dag tasks echo dependentTasks", ["echo"], "tasks wait for each other"),
    "unknown dependency": ("root dag tasks echo dependentTasks", ["x"], "depends on 'x', which is not a task"),
    "dependency number": ("root dag tasks echo dependentTasks", [1], "dependentTasks[0]: expected a string"),
    "unknown input": (
        f"{INPUT} componentInputParameter",
        "x",
        "the surrounding dag has no input 'x'",
    ),
    "input from nowhere": (INPUT, {}, "'taskOutputParameter' is missing or empty"),
    "unknown output": (
        "root dag tasks condition-1 inputs parameters pipelinechannel--echo-Output",
        {"taskOutputParameter": {"producerTask": "echo", "outputParameterKey": "x"}},
        "'echo' has no output 'x'",
    ),
    "condition syntax": ("root dag tasks condition-1 triggerPolicy condition", "1 +", "is not valid CEL"),
    "condition function": ("root dag tasks condition-1 triggerPolicy condition", "open('x')", "uses 'open'"),
    "condition variable": ("root dag tasks condition-1 triggerPolicy condition", "secret == 1", "uses 'secret'"),
    "condition input": (
        "root dag tasks condition-1 triggerPolicy condition",
        "inputs.parameter_values['y'] == 1",
        "the input 'y'",
    ),
    "condition depth": ("root dag tasks condition-1 triggerPolicy condition", "(" * 4000, "is not valid CEL"),
    "trigger rule": ("root dag tasks echo triggerPolicy strategy", "SOMETIMES", "'SOMETIMES' is unknown"),
    "retry": ("root dag tasks echo retryPolicy", {"backoffDuration": "soon"}, "'soon' is not a duration"),
    "negative retry": (
        "root dag tasks echo retryPolicy",
        {"maxRetryCount": -1},
        "expected a maxRetryCount of 0 or more",
    ),
    "negative wait": ("root dag tasks echo retryPolicy", {"backoffDuration": "-5s"}, "'-5s' is not a duration"),
    "infinite wait": ("root dag tasks echo retryPolicy", {"backoffDuration": "infs"}, "'infs' is not a duration"),
    "no executor": ("components comp-echo executorLabel", "exec-x", "there is no executor 'exec-x'"),
    "resolver": (
        "deploymentSpec executors exec-echo",
        {"resolver": {}},
        "exec-echo: executors of the kind 'resolver' do not",
    ),
    "lifecycle": (f"{EXECUTOR} lifecycle", {"preCacheCheck": {}}, "life-cycle hooks do not run locally"),
    "foreign container": (f"{EXECUTOR} command", ["no-java", "-jar"], "the program 'no-java' is not installed locally"),
    "no command": (f"{EXECUTOR} command", [], "has no command, and the entry point of its image is not known locally"),
    "command is text": (f"{EXECUTOR} command", "sh -c true", "command: expected a list, found 'sh -c true'"),
    "env": (f"{EXECUTOR} env", [{"value": "x"}], "env[0]: the field 'name' is missing"),
    "placeholder": (f"{EXECUTOR} args", ["{{$.pipeline_secret}}"], "placeholder {{$.pipeline_secret}} is unknown"),
    "placeholder in constant": (
        INPUT,
        {"runtimeValue": {"constant": {"a": ["{{$.nope}}"]}}},
        "{{$.nope}}",
    ),
    "argument structure": (f"{EXECUTOR} args", ['{"Concat": ["'], "container.args: the argument is not JSON"),
    "argument condition": (f"{EXECUTOR} args", ['{"IfPresent": {}}'], "neither a Concat nor an IfPresent"),
    "iterator": (
        "root dag tasks echo parameterIterator",
        {"itemInput": "text", "items": {"raw": "[1"}},
        "items.raw is not JSON",
    ),
    "iterator of no list": (
        "root dag tasks echo parameterIterator",
        {"itemInput": "text", "items": {"raw": "1"}},
        "expected a JSON list",
    ),
    "iterator input": (
        "root dag tasks echo parameterIterator",
        {"itemInput": "x", "items": {"raw": "[1]"}},
        "item 'x' is not an input",
    ),
    "workspace": (
        "deploymentSpec executors exec-echo",
        {"importer": {"artifactUri": {"constant": "x"}, "typeSchema": SCHEMA, "downloadToWorkspace": True}},
        "downloadToWorkspace needs a Kubernetes volume",
    ),
}


def changed(document: dict[str, Any], path: str, value: Any) -> dict[str, Any]:
    """Return a copy of the document with one field set; None removes it, except in the map of components."""
    result = copy.deepcopy(document)
    here: Any = result
    *parents, last = path.split(" ")
    for name in parents:
        here = here.setdefault(name, {})
    if value is None and path != "components comp-echo":
        here.pop(last)
    else:
        here[last] = value
    return result


@pytest.mark.parametrize("name", CHANGES)
def test_an_invalid_spec_is_refused_with_the_path_of_the_field(
    name: str, good: dict[str, Any], tmp_path: Path, work_dir: Path
) -> None:
    path, value, message = CHANGES[name]
    if name == "root is null":
        document = changed(good, path, None) | {"root": None}
    else:
        document = changed(good, path, value)
    (tmp_path / "p.json").write_text(json.dumps(document))
    assert message in refused(tmp_path / "p.json", work_dir)


def test_the_unchanged_file_is_accepted(good: dict[str, Any], tmp_path: Path, work_dir: Path) -> None:
    (tmp_path / "p.json").write_text(json.dumps(good))
    assert localvertex.run(tmp_path / "p.json", options=localvertex.Options(work_dir=work_dir))["state"] == "SUCCEEDED"


HOSTILE: list[Any] = [
    None,
    0,
    -1,
    1.5,
    1e308,
    True,
    "",
    "x",
    "../..",
    "{{$.x}}",
    "{{$",
    "\ud800",
    "\0",
    "9" * 400,
    '{"Concat": 3}',
    '{"IfPresent": {}}',
    '{"Concat": ["',
    [],
    [1],
    [None],
    [[]],
    {},
    {"a": 1},
    {"": ""},
]


NUM_DAMAGED = 50

MIN_REFUSED = 40
"""Of the damaged specs; the rest has only other values, such as another default."""


@pytest.mark.parametrize("seed", range(8))
def test_a_damaged_spec_is_refused_or_can_run(good: dict[str, Any], tmp_path: Path, seed: int) -> None:
    random, num_refused = Random(seed), 0
    for _ in range(NUM_DAMAGED):
        document = copy.deepcopy(good)
        for _ in range(random.choice([1, 1, 2, 4])):
            container, key = random.choice(fields(document))
            if random.random() < 0.7 or not isinstance(container, dict):
                container[key] = random.choice(HOSTILE)
            else:
                container[random.choice(["zz", "../e", str(key).lower()])] = container.pop(key)
        (tmp_path / "p.json").write_text(json.dumps(document))
        try:
            open_file(tmp_path / "p.json")
        except localvertex.UserError:
            num_refused += 1
    assert num_refused >= MIN_REFUSED


def platform(**config: Any) -> dict[str, Any]:
    return {"platforms": {"kubernetes": {"deploymentSpec": {"executors": {"exec-echo": config}}}}}


@pytest.fixture
def with_platform(good: dict[str, Any], tmp_path: Path) -> Callable[[Any], Path]:
    """Write the valid pipeline with a second document."""

    def write(document: Any) -> Path:
        (tmp_path / "p.yaml").write_text(f"---\n{json.dumps(good)}\n---\n{json.dumps(document)}\n")
        return tmp_path / "p.yaml"

    return write


def test_cluster_settings_that_change_a_step_are_refused_by_name(
    with_platform: Callable[[Any], Path], work_dir: Path
) -> None:
    secret = platform(secretAsEnv=[{"secretName": "s"}], nodeSelector={"labels": {"gpu": "yes"}})
    found = refused(with_platform(secret), work_dir)
    assert "platforms.kubernetes.deploymentSpec.executors.exec-echo.secretAsEnv" in found
    assert "nodeSelector" not in found
    assert "not a platform spec" in refused(with_platform({"kind": "x"}), work_dir)
    assert "not a platform spec" in refused(with_platform({"platforms": [1]}), work_dir)


def test_cluster_settings_that_make_no_difference_give_one_warning(
    with_platform: Callable[[Any], Path], work_dir: Path
) -> None:
    file = with_platform(platform(nodeSelector={"labels": {"gpu": "yes"}}))
    record = localvertex.run(file, options=localvertex.Options(work_dir=work_dir))
    assert record["state"] == "SUCCEEDED"
    assert len([text for text in record["warnings"] if "nodeSelector has no effect locally" in text]) == 1


def test_everything_that_is_refused_is_named_at_once_on_the_command_line(
    good: dict[str, Any], tmp_path: Path, command: Command
) -> None:
    document = changed(
        changed(good, f"{EXECUTOR} command", ["no-java"]), f"{EXECUTOR} lifecycle", {"preCacheCheck": {}}
    )
    document = changed(document, "root dag tasks condition-1 triggerPolicy condition", "1 +")
    (tmp_path / "p.json").write_text(json.dumps(document))
    done = command("run", "p.json")
    assert done.returncode == 2
    assert "triggerPolicy.condition" in done.stderr
    assert "the program 'no-java' is not installed locally" in done.stderr
    assert "Traceback" not in done.stderr
    assert not (tmp_path / "runs").exists()
