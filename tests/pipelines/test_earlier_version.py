"""Up to `evaluate`, the compiled file differs from that of an earlier version only in added parameters and in texts."""

import ast
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from google.protobuf import json_format

from pipelines.image_training import image_training
from pipelines.settings import Settings

MACHINES = {
    "boot_disk_size_gb",
    "boot_disk_type",
    "default_persistent_resource_id",
    "max_wait_duration",
    "max_wait_seconds",
    "persistent_resource_id",
    "reservation",
}
"""Parameters of the machines that the pipeline did not have before; two are also outputs of `plan`."""

OF_RELEASE = {
    "deploy_accelerator_count",
    "deploy_accelerator_type",
    "deploy_endpoint",
    "deploy_machine_type",
    "deploy_max_replicas",
    "deploy_min_replicas",
    "force_promotion",
    "max_regression",
    "min_compared_images",
    "must_improve",
}
"""Parameters of the comparison and the deployment, which the pipeline did not have before."""

ADDED = (
    {
        "learning_rate_schedule",
        "metric",
        "minimum_accuracy_gain",
        "optimizer",
        "patience",
        "profile_steps",
        "shuffle",
        "strict",
        "warmup_fraction",
    }
    | MACHINES
    | OF_RELEASE
)
"""Parameters that the pipeline did not have before."""

OTHER_DEFAULTS = {
    "!/root/inputDefinitions/parameters/accelerator_type/defaultValue",
    "!/root/inputDefinitions/parameters/machine_type/defaultValue",
    "!/root/inputDefinitions/parameters/serving_image/defaultValue",
}
"""The default machine and the prediction server are others (docs/decisions, 0075 and 0094)."""

OF_PREPARE = {
    "beam_runner",
    "dataflow_disk_size_gb",
    "dataflow_machine_type",
    "dataflow_max_workers",
    "dataflow_service_account",
    "dataflow_subnetwork",
    "image",
    "pipeline_root",
    "prepare_engine",
    "project",
    "region",
    "reread",
}
"""Inputs that `prepare` did not have before; pipeline_root, image and region were inputs of `plan`."""

SETTINGS = "settings"
"""An input of `prepare`, the values of later steps, which it refuses when they are wrong."""

TARGETS = {"webhook_secret", "topic"}
"""Inputs of `summary`, which sends the end of a run when asked; its body is another one."""

OUTPUTS = {"predictions": "evaluate", "changes": "prepare", "change_metrics": "prepare"}
"""Outputs that components did not have before, with the component."""


RENAMED = {"minimum_accuracy": "minimum_score", "return result.accuracy": "return result.score"}
"""The score is that of the pipeline's `metric`, which is the accuracy by default."""


@pytest.fixture(scope="module")
def before(repository: Path) -> dict[str, Any]:
    """The spec that the earlier version compiled."""
    text = (repository / "tests" / "data" / "earlier_version" / "image_training.json").read_text()
    for old, new in RENAMED.items():
        text = text.replace(old, new)
    return until_release(json.loads(text))


@pytest.fixture(scope="module")
def today() -> dict[str, Any]:
    """The spec of today's pipeline with the same settings."""
    return until_release(json_format.MessageToDict(image_training(Settings()).pipeline_spec))


def until_release(spec: dict[str, Any]) -> dict[str, Any]:
    """Return a spec without the steps after `evaluate`, which another test compares with the design."""
    components = spec["components"]
    del components["comp-condition-2"]["dag"]["tasks"]["condition-3"]
    reached, left = set(), [spec["root"]]
    while left:
        tasks = left.pop().get("dag", {}).get("tasks", {}).values()
        new = {task["componentRef"]["name"] for task in tasks} - reached
        reached |= new
        left += [components[name] for name in new]
    kept = {name: components[name] for name in reached}
    executors = {each["executorLabel"] for each in kept.values() if "executorLabel" in each}
    every = spec["deploymentSpec"]["executors"]
    return spec | {"components": kept, "deploymentSpec": {"executors": {name: every[name] for name in executors}}}


def without_texts(value: Any) -> Any:
    """Return the spec without descriptions, and without the commands of executors."""
    if isinstance(value, dict):
        return {key: without_texts(inner) for key, inner in value.items() if key not in ("description", "command")}
    return [without_texts(inner) for inner in value] if isinstance(value, list) else value


def differences(before: Any, today: Any, path: str = "") -> Iterator[str]:
    """Yield `+path`, `-path` and `!path` for what was added, removed and changed."""
    if isinstance(before, dict) and isinstance(today, dict):
        for key in sorted(before.keys() | today.keys()):
            inner = f"{path}/{key}"
            if key in before and key in today:
                yield from differences(before[key], today[key], inner)
            else:
                yield f"+{inner}" if key in today else f"-{inner}"
    elif before != today:
        yield f"!{path}"


def commands(spec: dict[str, Any]) -> dict[str, list[str]]:
    """Return executor -> its command."""
    executors = spec["deploymentSpec"]["executors"]
    return {name: each["container"]["command"] for name, each in executors.items() if "container" in each}


def is_source(text: str) -> bool:
    """Return whether a word of a command is the source of a Python component."""
    return text.startswith("\nimport kfp\n")


_ADDED_ARGUMENTS = {
    *ADDED,
    "criteria",
    "replicas",
    *OF_PREPARE,
    *OUTPUTS,
    SETTINGS,
    "seed",
    "dataflow",
    "predictions_path",
    "changes_path",
}
"""Of calls in the bodies of components."""


class Statements(ast.NodeTransformer):
    """Removes imports, docstrings and the added hyperparameters; comments are not in the tree."""

    def visit_Import(self, node: ast.Import) -> None:
        return None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        return None

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        if ast.get_docstring(node) is not None:
            del node.body[0]
        return self.generic_visit(node)

    def visit_arguments(self, node: ast.arguments) -> ast.AST:
        with_default = dict(zip([each.arg for each in reversed(node.args)], reversed(node.defaults), strict=False))
        if {each.arg for each in node.args} >= {"source", "seed"}:
            node.args = [each for each in node.args if each.arg != "seed"]
        node.args = [each for each in node.args if each.arg not in {*ADDED, *OF_PREPARE, *OUTPUTS, SETTINGS}]
        node.defaults = [with_default[each.arg] for each in node.args if each.arg in with_default]
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        node.keywords = [each for each in node.keywords if each.arg not in _ADDED_ARGUMENTS]
        return self.generic_visit(node)

    def visit_List(self, node: ast.List) -> ast.AST:
        node.elts = [each for each in node.elts if not (isinstance(each, ast.Tuple) and is_added(each.elts[0]))]
        return self.generic_visit(node)

    def visit_Dict(self, node: ast.Dict) -> ast.AST:
        pairs = list(zip(node.keys, node.values, strict=True))
        kept = [(k, v) for k, v in pairs if not is_added(k)]
        node.keys, node.values = [k for k, _ in kept], [v for _, v in kept]
        return self.generic_visit(node)


def is_added(name: ast.expr | None) -> bool:
    """Return whether an expression is the name of an added parameter."""
    return isinstance(name, ast.Constant) and name.value in ADDED


def statements(source: str) -> str:
    return ast.unparse(Statements().visit(ast.parse(source)))


def test_only_parameters_were_added(before: dict[str, Any], today: dict[str, Any]) -> None:
    found = list(differences(without_texts(before), without_texts(today)))
    # The seed of the training no longer chooses the test images.
    removed = {"-/components/comp-prepare/inputDefinitions/parameters/seed"}
    removed |= {"-/components/comp-exit-handler-1/dag/tasks/prepare/inputs/parameters/seed"}
    assert {each for each in found if not each.startswith("+")} == removed | OTHER_DEFAULTS
    outputs = {f"+/components/comp-{step}/outputDefinitions/artifacts/{name}" for name, step in OUTPUTS.items()}
    assert outputs <= set(found)
    found = [each for each in found if each.startswith("+") and each not in outputs]
    of_settings = [each for each in found if "/prepare/inputs/parameters/pipelinechannel--" in each]
    names = {each.rpartition("/")[2] for each in found if each not in of_settings}
    names = {name.removeprefix("pipelinechannel--").removeprefix("plan-") for name in names}
    # `compare` reads the source again.
    assert names == ADDED | OF_PREPARE | {SETTINGS} | TARGETS | {"source"}
    assert {each.split("/")[-2] for each in found} == {"parameters"}


def test_commands_differ_only_in_imports_comments_and_docstrings(before: dict[str, Any], today: dict[str, Any]) -> None:
    old, new = commands(before), commands(today)
    assert old.keys() == new.keys()
    for name, words in old.items():
        assert len(words) == len(new[name]), name
        for one, other in zip(words, new[name], strict=True):
            assert is_source(one) == is_source(other), name
            if is_source(one) and name == "exec-summary":
                assert set(names_in(other)) - set(names_in(one)) == TARGETS
            elif is_source(one):
                assert statements(one) == statements(other), name
            else:
                assert one == other, name


def test_only_plan_and_prepare_have_the_added_parameters(today: dict[str, Any]) -> None:
    having = {name for name, words in commands(today).items() if ADDED & set(names_in(words[-1]))}
    # Those of the release are inputs of later steps, too.
    assert having == {"exec-plan", "exec-prepare"}


def names_in(source: str) -> list[str]:
    if not is_source(source):
        return []
    return [node.arg for node in ast.walk(ast.parse(source)) if isinstance(node, ast.arg)]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("reported(measure)", "measure"),
        ("is_noted=True", "is_noted=False"),
        ("    return result.score", "    return 1 - result.score"),
        ("checkpoint_directory: str,", "checkpoint_directory: str, other: str,"),
    ],
)
def test_a_changed_statement_is_found(today: dict[str, Any], old: str, new: str) -> None:
    source = commands(today)["exec-evaluate"][-1]
    assert old in source
    assert statements(source) != statements(source.replace(old, new))


@pytest.mark.parametrize(
    ("before", "today", "found"),
    [
        ({"a": 1}, {"a": 1, "b": 2}, ["+/b"]),
        ({"a": 1, "b": 2}, {"a": 1}, ["-/b"]),
        ({"a": {"b": [1]}}, {"a": {"b": [2]}}, ["!/a/b"]),
        ({"a": 1}, {"a": 1}, []),
    ],
)
def test_differences_are_found_in_both_directions(before: Any, today: Any, found: list[str]) -> None:
    assert list(differences(before, today)) == found
