"""Artifacts: every type, metadata, lists, custom paths, and artifacts that cross the border of the pipeline."""

from typing import Any, NamedTuple

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP


@dsl.component(**STEP)
def make_all(
    artifact: dsl.Output[dsl.Artifact],
    dataset: dsl.Output[dsl.Dataset],
    model: dsl.Output[dsl.Model],
    metrics: dsl.Output[dsl.Metrics],
    classification: dsl.Output[dsl.ClassificationMetrics],
    sliced: dsl.Output[dsl.SlicedClassificationMetrics],
    html: dsl.Output[dsl.HTML],
    markdown: dsl.Output[dsl.Markdown],
) -> None:
    for each in (artifact, dataset, html, markdown):
        with open(each.path, "w") as file:
            file.write(each.schema_title)
    model.framework = "keras"
    metrics.log_metric("accuracy", 0.5)
    classification.log_confusion_matrix(["a", "b"], [[1, 2], [3, 4]])
    classification.log_roc_curve([0.0, 1.0], [0.0, 1.0], [1.0, 0.0])
    sliced.metadata["evaluationSlices"] = [{"slice": "a"}]


@dsl.component(**STEP)
def titles(
    artifact: dsl.Input[dsl.Artifact],
    dataset: dsl.Input[dsl.Dataset],
    model: dsl.Input[dsl.Model],
    metrics: dsl.Input[dsl.Metrics],
    classification: dsl.Input[dsl.ClassificationMetrics],
    sliced: dsl.Input[dsl.SlicedClassificationMetrics],
    html: dsl.Input[dsl.HTML],
    markdown: dsl.Input[dsl.Markdown],
) -> list:
    read = [open(each.path).read() for each in (artifact, dataset, html, markdown)]
    matrix = classification.metadata["confusionMatrix"]["rows"][1]["row"]
    return [
        *read,
        model.framework,
        metrics.metadata["accuracy"],
        matrix,
        sliced.metadata["evaluationSlices"][0]["slice"],
        type(sliced).__name__,
    ]


@construct(
    outputs={
        "Output": [
            *("system.Artifact", "system.Dataset", "system.HTML", "system.Markdown", "keras", 0.5, [3, 4]),
            *("a", "SlicedClassificationMetrics"),
        ]
    }
)
@dsl.pipeline(name="artifact-types")
def artifact_types() -> list:
    made = make_all().outputs
    return titles(**{name: made[name] for name in made}).output


@dsl.component(**STEP)
def produce(text: str, data: dsl.Output[dsl.Dataset]) -> None:
    with open(data.path, "w") as file:
        file.write(text)
    data.metadata["length"] = len(text)
    data.metadata["nested"] = {"list": [1, 2.5, None]}


@dsl.component(**STEP)
def consume(data: dsl.Input[dsl.Dataset]) -> str:
    nested = data.metadata["nested"]["list"]
    return f"{open(data.path).read()} {int(data.metadata['length'])} {nested[1:]} {data.uri == data.path}"


@construct(outputs={"Output": "data 4 [2.5, None] True"})
@dsl.pipeline(name="artifact-metadata")
def artifact_metadata() -> str:
    return consume(data=produce(text="data").outputs["data"]).output


@dsl.component(**STEP)
def join(parts: dsl.Input[list[dsl.Dataset]]) -> str:
    return "+".join(open(each.path).read() for each in parts)


@construct(outputs={"Output": "a+b"})
@dsl.pipeline(name="artifact-lists")
def artifact_lists() -> str:
    with dsl.ParallelFor(["a", "b"]) as item:
        made = produce(text=item)
    return join(parts=dsl.Collected(made.outputs["data"])).output


@dsl.component(**STEP)
def read(data: dsl.Input[dsl.Dataset]) -> str:
    return open(data.path).read()


@construct(artifacts={"data": "given.txt"}, outputs={"Output": "given"}, kfp_local="missing 1 required argument: data")
@dsl.pipeline(name="input-artifact")
def input_artifact(data: dsl.Input[dsl.Dataset]) -> str:
    return read(data=data).output


@dsl.component(**STEP)
def read_optional(data: dsl.Input[dsl.Dataset] = None) -> str:
    return "none" if data is None else open(data.path).read()


@construct(outputs={"none": "none", "some": "some"})
@dsl.pipeline(name="optional-artifact")
def optional_artifact() -> NamedTuple("O", [("none", str), ("some", str)]):
    outputs = NamedTuple("O", [("none", str), ("some", str)])
    some = read_optional(data=produce(text="some").outputs["data"])
    return outputs(none=read_optional().output, some=some.output)


@dsl.component(**STEP)
def produce_elsewhere(data: dsl.Output[dsl.Dataset]) -> None:
    import os

    os.makedirs("own", exist_ok=True)
    with open("own/place.txt", "w") as file:
        file.write("elsewhere")
    data.set_path(os.path.abspath("own/place.txt"))


@construct(outputs={"Output": "elsewhere"}, kfp_local="No such file or directory")
@dsl.pipeline(name="artifact-at-a-custom-path")
def artifact_at_a_custom_path() -> str:
    return read(data=produce_elsewhere().outputs["data"]).output


@dsl.component(**STEP)
def paths(data: dsl.OutputPath("Dataset")) -> None:
    with open(data, "w") as file:
        file.write("by path")


@dsl.component(**STEP)
def read_path(data: dsl.InputPath("Dataset")) -> str:
    with open(data) as file:
        return file.read()


@construct(outputs={"Output": "by path"})
@dsl.pipeline(name="artifact-paths")
def artifact_paths() -> str:
    return read_path(data=paths().outputs["data"]).output


@dsl.component(**STEP)
def returned() -> dsl.Dataset:
    data = dsl.Dataset(uri=dsl.get_uri(suffix="own"), metadata={"kind": "returned"})
    with open(data.path, "w") as file:
        file.write("returned")
    return data


@construct(outputs={"Output": "returned"}, kfp_local={"Output": "returned"})
@dsl.pipeline(name="returned-artifact")
def returned_artifact() -> str:
    return read(data=returned().output).output


@dsl.component(**STEP)
def produce_resource(name: str, model: dsl.Output[dsl.Artifact]) -> None:
    model.metadata["resourceName"] = name


@dsl.component(**STEP)
def resource(model: dsl.Input[dsl.Artifact]) -> str:
    return model.metadata["resourceName"]


def _vertex_model(document: dict[str, Any]) -> None:
    """Declare Google's type; its class would have to be installed where kfp compiles."""
    for component, side in (("comp-produce-resource", "outputDefinitions"), ("comp-resource", "inputDefinitions")):
        artifact = document["components"][component][side]["artifacts"]["model"]
        artifact["artifactType"] = {"schemaTitle": "google.VertexModel", "schemaVersion": "0.0.1"}
        artifact["description"] = "A model of the registry."


@construct(outputs={"Output": "models/1"}, edit=_vertex_model)
@dsl.pipeline(name="googles-artifact-type")
def googles_artifact_type() -> str:
    return resource(model=produce_resource(name="models/1").outputs["model"]).output


def _declared_metadata(document: dict[str, Any]) -> None:
    output = document["components"]["comp-paths"]["outputDefinitions"]["artifacts"]["data"]
    output["metadata"] = {"origin": "declared", "rows": 3.0}


@dsl.component(**STEP)
def origin(data: dsl.Input[dsl.Dataset]) -> str:
    return repr(data.metadata)


@construct(outputs={"Output": "{'origin': 'declared', 'rows': 3}"}, edit=_declared_metadata, kfp_local={"Output": "{}"})
@dsl.pipeline(name="declared-metadata")
def declared_metadata() -> str:
    return origin(data=paths().outputs["data"]).output


def _schema(kind: str, text: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        output = document["components"]["comp-paths"]["outputDefinitions"]["artifacts"]["data"]
        output["artifactType"] = {kind: text}

    return change


@construct(refused="schemaUri", edit=_schema("schemaUri", "gs://bucket/schema.yaml"), kfp_local="finished with status")
@dsl.pipeline(name="schema-by-uri")
def schema_by_uri() -> None:
    paths()


@construct(
    refused="instanceSchema",
    edit=_schema("instanceSchema", "title: kfp.Dataset\ntype: object\n"),
    kfp_local="finished with status",
)
@dsl.pipeline(name="schema-inline")
def schema_inline() -> None:
    paths()


def _properties(name: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        output = document["components"]["comp-paths"]["outputDefinitions"]["artifacts"]["data"]
        output[name] = {"rows": {"constant": 3.0}}

    return change


@construct(refused="properties", edit=_properties("properties"), kfp_local={})
@dsl.pipeline(name="output-properties")
def output_properties() -> None:
    paths()


@construct(refused="customProperties", edit=_properties("customProperties"), kfp_local={})
@dsl.pipeline(name="output-custom-properties")
def output_custom_properties() -> None:
    paths()
