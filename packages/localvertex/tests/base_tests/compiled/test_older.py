"""Files of kfp 1.8: an output without its key is the producer's only one; a number for a text is its text."""

from typing import Any

import pytest

from localvertex._base.compiled.reader import read_pipeline

NAMELESS = {"parameters": {"text": {"taskOutputParameter": {"producerTask": "make"}}}}


def document(outputs: list[str], inputs: dict[str, Any]) -> dict[str, Any]:
    """Return a pipeline of two steps, in which `use` has these inputs and `make` these outputs."""
    make = {"outputDefinitions": {"parameters": {name: {"type": "STRING"} for name in outputs}}, "executorLabel": "e"}
    use = {"inputDefinitions": {"parameters": {"text": {"type": "STRING"}}}, "executorLabel": "e"}
    tasks = {"make": {"componentRef": {"name": "make"}}, "use": {"componentRef": {"name": "use"}, "inputs": inputs}}
    return {
        "pipelineSpec": {
            "schemaVersion": "2.0.0",
            "sdkVersion": "kfp-1.8.22",
            "pipelineInfo": {"name": "older"},
            "root": {"dag": {"tasks": tasks}},
            "components": {"make": make, "use": use},
            "deploymentSpec": {"executors": {"e": {"container": {"image": "python", "command": ["true"]}}}},
        }
    }


def test_the_only_output_is_meant() -> None:
    pipeline = read_pipeline(document(["text"], NAMELESS))
    assert not pipeline.problems
    dag = pipeline.root.dag
    assert dag is not None
    assert dag.tasks["use"].parameters["text"].output == "text"
    assert set(pipeline.components) == {"make", "use"}


@pytest.mark.parametrize("outputs", [[], ["a", "b"]])
def test_with_none_or_several_outputs_the_file_is_refused(outputs: list[str]) -> None:
    problem = f"the field 'outputParameterKey' is missing or empty, and 'make' has {len(outputs)} outputs"
    assert read_pipeline(document(outputs, NAMELESS)).problems == [
        f"root.dag.tasks.use.inputs.parameters.text.taskOutputParameter: {problem}"
    ]


def test_a_number_for_a_text_is_its_text() -> None:
    """As kfp 1.8 writes a `bool`."""
    number = {"parameters": {"text": {"runtimeValue": {"constantValue": {"intValue": "1"}}}}}
    dag = read_pipeline(document([], number)).root.dag
    assert dag is not None
    assert dag.tasks["use"].parameters["text"].constant == "1"
