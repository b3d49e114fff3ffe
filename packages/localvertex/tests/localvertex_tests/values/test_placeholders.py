"""Placeholders: every kind, everywhere, once."""

import json
from typing import Any

import pytest

from localvertex.values.arguments import expand_arguments
from localvertex.values.placeholders import (
    JOB_FIELDS,
    Scope,
    Unresolvable,
    resolve_json_template,
    resolve_structure,
    resolve_text,
    unknown_placeholders,
)

ARTIFACT = {
    "name": "artifacts/7",
    "type": {},
    "uri": "gs://b/data",
    "metadata": {"rows": 3, "resourceName": "models/m@1"},
}
SCOPE = Scope(
    job={name: f"<{name}>" for name in JOB_FIELDS},
    task={"pipeline_task_name": "train", "pipeline_task_uuid": "42"},
    executor_input={
        "inputs": {
            "parameterValues": {
                "text": 'say "hi"\n\\ {{$.pipeline_root}}',
                "n": 3,
                "x": 0.5,
                "flag": True,
                "names": ["a", {"b": 'q"'}],
            },
            "artifacts": {"data": {"artifacts": [ARTIFACT]}},
        },
        "outputs": {
            "parameters": {"out": {"outputFile": "/run/out"}},
            "artifacts": {"model": {"artifacts": [{"name": "m", "uri": "/run/model", "metadata": {}}]}},
            "outputFile": "/run/executor_output.json",
        },
    },
)


@pytest.mark.parametrize(
    ("template", "expected"),
    [
        ("{{$.inputs.parameters['n']}}", "3"),
        ("n={{$.inputs.parameters['n']}} x={{$.inputs.parameters['x']}}", "n=3 x=0.5"),
        ('{{$.inputs.parameters["flag"]}}', "true"),
        ("{{$.inputs.parameters['names']}}", '["a", {"b": "q\\""}]'),
        ("{{$.inputs.parameters['absent']}}", "null"),
        ("{{$.inputs.artifacts['data'].uri}}", "gs://b/data"),
        ("{{$.inputs.artifacts['data'].path}}", "/gcs/b/data"),
        ("{{$.inputs.artifacts['data'].name}}", "artifacts/7"),
        ("{{$.inputs.artifacts['data'].metadata['resourceName']}}", "models/m@1"),
        ("{{$.inputs.artifacts['data'].metadata}}", '{"rows": 3, "resourceName": "models/m@1"}'),
        ("{{$.outputs.artifacts['model'].path}}", "/run/model"),
        ("{{$.outputs.parameters['out'].output_file}}", "/run/out"),
        ("{{$.outputs.output_file}}", "/run/executor_output.json"),
        ("{{$.pipeline_task_name}}-{{$.pipeline_task_uuid}}", "train-42"),
        ("{{$}}", json.dumps(SCOPE.executor_input)),
        ("{{$.json_escape[0]}}", json.dumps(SCOPE.executor_input)),
        ("no placeholder {{here}} $ {{}}", "no placeholder {{here}} $ {{}}"),
        *((f"{{{{$.{name}}}}}", f"<{name}>") for name in JOB_FIELDS),
    ],
)
def test_a_placeholder_becomes_its_value(template: str, expected: Any) -> None:
    assert resolve_text(template, SCOPE) == expected
    assert unknown_placeholders(template) == []


def test_what_a_value_contains_is_not_a_placeholder() -> None:
    assert "{{$.pipeline_root}}" in resolve_text("{{$.inputs.parameters['text']}}", SCOPE)


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{$.nothing}}", "is unknown"),
        ("{{$.inputs.artifacts['absent'].uri}}", "the artifact 'absent', which is missing"),
        ("{{$.inputs.artifacts['data'].metadata['absent']}}", "has no metadata 'absent'"),
        ("{{$.outputs.parameters['absent'].output_file}}", "does not name a declared output"),
    ],
)
def test_a_placeholder_without_a_value_is_an_error_that_names_it(template: str, message: str) -> None:
    with pytest.raises(Unresolvable, match=message):
        resolve_text(template, SCOPE)


def test_inside_json_strings_values_are_escaped_and_outside_they_are_json() -> None:
    template = """{"a": "<{{$.inputs.parameters['text']}}>", "b": {{$.inputs.parameters['names']}}, "quote\\"": "x",
        "c": "{{$.inputs.parameters['text'].json_escape[1]}}", "n": {{$.inputs.parameters['n']}}}"""
    escaped = []
    decoded = json.loads(resolve_json_template(template, SCOPE, escaped.append), strict=False)
    text = SCOPE.executor_input["inputs"]["parameterValues"]["text"]
    assert decoded == {"a": f"<{text}>", "b": ["a", {"b": 'q"'}], 'quote"': "x", "c": text, "n": 3}
    assert escaped == [".inputs.parameters['text']"]


def test_structures_are_resolved_at_any_depth_and_keep_their_types() -> None:
    value = {"{{$.pipeline_task_name}}": ["{{$.inputs.parameters['n']}}", 1, None, {"deep": "{{$.pipeline_root}}/x"}]}
    assert resolve_structure(value, SCOPE) == {"train": ["3", 1, None, {"deep": "<pipeline_root>/x"}]}


def test_what_belongs_to_a_wrapped_jobs_command_is_left_until_the_job_is_made() -> None:
    value = ["{{$}}", "{{$.json_escape[1]}}", "{{$.outputs.parameters['out'].output_file}}", "{{$.pipeline_root}}"]
    early = resolve_structure(value, SCOPE, is_final=False)
    assert early == [*value[:3], "<pipeline_root>"]
    late = resolve_structure(early, SCOPE)
    assert late[:3] == [json.dumps(SCOPE.executor_input), json.dumps(SCOPE.executor_input), "/run/out"]


def test_concat_and_if_present_flatten() -> None:
    arguments = (
        "plain",
        '{"Concat": ["a", {"IfPresent": {"InputName": "x", "Then": "-x"}}, "b"]}',
        '{"IfPresent": {"InputName": "x", "Then": ["--x", {"Concat": ["1", "2"]}], "Else": ["--none"]}}',
        '{"IfPresent": {"InputName": "y", "Then": ["--y"]}}',
    )
    assert expand_arguments(arguments, {"x"}) == ["plain", "a-xb", "--x", "12"]
    assert expand_arguments(arguments, set()) == ["plain", "ab", "--none"]
    with pytest.raises(Unresolvable, match="neither a Concat nor an IfPresent"):
        expand_arguments(('{"Concat": [{"Other": 1}]}',), set())
