"""A value that a reader cannot hold is refused by every command that reads a file: one line, exit code 2."""

from collections.abc import Callable
from pathlib import Path

import pytest

import compile as compile_program
from localvertex import __main__ as localvertex
from localvertex._base.userinput.cli import FAILED, WRONG_INPUT
from localvertex.machines import __main__ as machines
from pipelines import __main__ as pipelines

PIPELINE = """\
pipelineInfo: {name: small}
schemaVersion: 2.1.0
sdkVersion: kfp-2.17.0
components: {comp-a: {executorLabel: exec-a}}
deploymentSpec: {executors: {exec-a: {container: {image: "python:3.11", command: ["true"]}}}}
root:
  dag: {tasks: {a: {componentRef: {name: comp-a}, taskInfo: {name: a}}}}
  inputDefinitions: {parameters: {n: {parameterType: NUMBER_INTEGER, defaultValue: 1}}}
"""
VALUES = {
    "hexadecimal": "0x" + "f" * 3600,
    "negative": "-0x" + "f" * 3600,
    "binary": "0b" + "1" * 4200,
    "octal": "0" + "7" * 4200,
    "sexagesimal": ":".join(["59"] * 1400),
    "long sexagesimal": ":".join(["59"] * 1_500_000),
    "long sexagesimal fraction": ":".join(["59"] * 1_500_000) + ".5",
    "decimal": "1" * 4000,
    "long decimal": "1" * 5000,
    "float": "1.0e+999",
    "in a set": "!!set {? 0x" + "f" * 3600 + "}",
    "in an ordered mapping": "!!omap [b: 0x" + "f" * 3600 + "]",
    "key": "{? 0x" + "f" * 3600 + " : 1}",
    "month": "2026-13-01",
    "offset": "2026-01-01T00:00:00+99:99",
    "integer": "!!int x",
    "empty integer": "!!int ''",
    "empty float": "!!float ''",
    "timestamp": "!!timestamp x",
    "boolean": "!!bool x",
    "bytes": "!!binary é",
    "recursion": "&a [*a]",
    "merge of itself": "&a {<<: *a}",
    "merge of a number": "{<<: 1}",
    "key that is a list": "{? [1] : 1}",
}
JSON_VALUES = {"decimal": "1" * 4000, "long decimal": "1" * 5000, "float": "1e999", "depth": "[" * 101 + "]" * 101}
TOML_VALUES = JSON_VALUES | {
    "hexadecimal": VALUES["hexadecimal"],
    "table": "1\n[step." + "a." * 5_000 + "a]",
    "stack": "[" * 100_000,
    "float": "inf",
}

COMMANDS: dict[str, tuple[Callable[[list[str]], int], list[str], str]] = {
    "run": (localvertex.main, ["run", "{file}"], PIPELINE.replace("defaultValue: 1", "defaultValue: {value}")),
    "run of a job": (localvertex.main, ["run", "{file}"], "runtimeConfig: {value}\npipelineSpec: {}"),
    "parameters": (localvertex.main, ["run", "{pipeline}", "--parameter-file", "{file}"], "n: {value}"),
    "prove": (localvertex.main, ["prove", "{file}"], PIPELINE.replace("defaultValue: 1", "defaultValue: {value}")),
    "check": (machines.main, ["check", "{file}"], PIPELINE.replace("defaultValue: 1", "defaultValue: {value}")),
    "check of pools": (machines.main, ["check", "{file}"], "- replica_count: {value}"),
    "convert": (machines.main, ["convert", "{file}"], "trainingInput: {workerCount: {value}}"),
    "settings": (compile_program.main, ["--settings", "{file}"], "min_replica_count: {value}"),
    "recipe": (compile_program.main, ["--recipe", "{file}"], "flip: {value}"),
    "submit": (
        pipelines.main,
        ["submit", "{file}", "--dry-run", "--project", "p"],
        PIPELINE.replace("defaultValue: 1", "defaultValue: {value}"),
    ),
    "schedules": (
        pipelines.main,
        ["schedule", "plan", "{file}", "--project", "p"],
        "schedules:\n- {name: a, cron: 0 3 * * 1, file: pipeline.yaml, max_concurrent_runs: {value}}",
    ),
}
"""Each program, its words, and its file; every `{value}` is replaced."""


def refused(program: Callable[[list[str]], int], words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert program(words) == WRONG_INPUT
    printed = capsys.readouterr()
    assert printed.err.startswith("error: ")
    assert printed.err.count("\n") == 1


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    Path("pipeline.yaml").write_text(PIPELINE)
    return tmp_path


@pytest.mark.parametrize("value", VALUES)
@pytest.mark.parametrize("command", COMMANDS)
def test_a_value_of_yaml(command: str, value: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program, words, text = COMMANDS[command]
    Path("file.yaml").write_text(text.replace("{value}", VALUES[value]))
    refused(program, [word.format(file="file.yaml", pipeline="pipeline.yaml") for word in words], capsys)
    assert {each.name for each in folder.iterdir()} == {"file.yaml", "pipeline.yaml"}


@pytest.mark.parametrize("value", JSON_VALUES)
@pytest.mark.parametrize("command", ["run", "check", "convert", "schedules"])
def test_a_value_of_json(command: str, value: str, capsys: pytest.CaptureFixture[str]) -> None:
    program, words, _ = COMMANDS[command]
    Path("file.json").write_text('{"root": {"a": ' + JSON_VALUES[value] + "}}")
    refused(program, [word.format(file="file.json") for word in words], capsys)


@pytest.mark.parametrize("value", JSON_VALUES)
def test_a_value_of_the_command_line(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    refused(localvertex.main, ["run", "pipeline.yaml", "--parameter", f"n={JSON_VALUES[value]}"], capsys)


@pytest.mark.parametrize("value", TOML_VALUES)
def test_a_value_of_toml(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("localvertex.toml").write_text("[step.a]\noutputs.x = " + TOML_VALUES[value])
    refused(localvertex.main, ["run", "pipeline.yaml"], capsys)


@pytest.mark.parametrize("value", ["[" * 100_000, "1" * 5000])
def test_a_default_that_is_a_text(value: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file.yaml").write_text(PIPELINE.replace("defaultValue: 1", f"defaultValue: '{value}'"))
    refused(localvertex.main, ["run", "file.yaml"], capsys)


@pytest.mark.parametrize("time", ["9999-12-31T23:59:59-14:00", "'0001-01-01T00:00:00+14:00'"])
def test_a_time_without_a_moment_in_utc(time: str, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file.yaml").write_text(f"schedules:\n- {{name: a, cron: 0 3 * * 1, file: pipeline.yaml, start: {time}}}")
    refused(pipelines.main, ["schedule", "plan", "file.yaml", "--project", "p"], capsys)


def test_init_lists_such_a_file(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("file.yaml").write_text(PIPELINE.replace("defaultValue: 1", f"defaultValue: {VALUES['hexadecimal']}"))
    assert localvertex.main(["init", str(folder)]) != FAILED
    assert "cannot run here" in capsys.readouterr().out


def test_a_value_given_by_a_program() -> None:
    from localvertex import Options, UserError, run

    with pytest.raises(UserError, match="parameter 'n' is <int too large to show>"):
        run("pipeline.yaml", parameters={"n": 1 << 20_000}, options=Options())
