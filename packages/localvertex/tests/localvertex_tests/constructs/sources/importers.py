"""Importers: addresses from constants and parameters, metadata, and the workspace, which is refused."""

from typing import Any

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP


@dsl.component(**STEP)
def describe(data: dsl.Input[dsl.Dataset]) -> str:
    return f"{data.uri} {sorted(data.metadata.items())}"


@construct(outputs={"Output": "https://host.example/data.csv []"})
@dsl.pipeline(name="importer-alone")
def importer() -> str:
    data = dsl.importer(artifact_uri="https://host.example/data.csv", artifact_class=dsl.Dataset, reimport=True)
    return describe(data=data.output).output


@construct(
    parameters={"uri": "https://host.example/other.csv", "rows": 3},
    outputs={"Output": "https://host.example/other.csv [('kind', 'a test'), ('rows', '3'), ('who', 'rows 3')]"},
)
@dsl.pipeline(name="importer-with-metadata")
def importer_with_metadata(uri: str, rows: int, kind: str = "test") -> str:
    data = dsl.importer(
        artifact_uri=uri,
        artifact_class=dsl.Dataset,
        reimport=False,
        metadata={"rows": rows, "kind": f"a {kind}", "who": f"rows {rows}"},
    )
    return describe(data=data.output).output


@construct(
    refused="downloadToWorkspace needs a Kubernetes volume", kfp_local={"Output": "https://host.example/data.csv []"}
)
@dsl.pipeline(
    name="importer-to-a-workspace", pipeline_config=dsl.PipelineConfig(workspace=dsl.WorkspaceConfig(size="1Gi"))
)
def importer_to_a_workspace() -> str:
    data = dsl.importer(
        artifact_uri="https://host.example/data.csv", artifact_class=dsl.Dataset, download_to_workspace=True
    )
    return describe(data=data.output).output


def _executor(kind: str, spec: dict[str, Any]) -> Any:
    def change(document: dict[str, Any]) -> None:
        executors = document["deploymentSpec"]["executors"]
        (label,) = [name for name in executors if "importer" in name]
        executors[label] = {kind: spec}

    return change


@construct(
    refused="'resolver' do not run locally",
    edit=_executor("resolver", {"outputArtifactQueries": {"artifact": {"filter": 'name = "a"', "limit": 1}}}),
    kfp_local="Got unknown spec in ExecutorSpec",
)
@dsl.pipeline(name="resolver")
def resolver() -> None:
    dsl.importer(artifact_uri="data.csv", artifact_class=dsl.Dataset)


@construct(
    refused="'customJob' do not run locally",
    edit=_executor("customJob", {"customJob": {"jobSpec": {"workerPoolSpecs": []}}}),
    kfp_local="Got unknown spec in ExecutorSpec",
)
@dsl.pipeline(name="custom-job-executor")
def custom_job_executor() -> None:
    dsl.importer(artifact_uri="data.csv", artifact_class=dsl.Dataset)


def _properties(name: str) -> Any:
    def change(document: dict[str, Any]) -> None:
        executors = document["deploymentSpec"]["executors"]
        (label,) = [label for label in executors if "importer" in label]
        executors[label]["importer"][name] = {"rows": {"constant": 3.0}}

    return change


@construct(refused="properties", edit=_properties("properties"), kfp_local={})
@dsl.pipeline(name="importer-properties")
def importer_properties() -> None:
    dsl.importer(artifact_uri="data.csv", artifact_class=dsl.Dataset)


@construct(refused="customProperties", edit=_properties("customProperties"), kfp_local={})
@dsl.pipeline(name="importer-custom-properties")
def importer_custom_properties() -> None:
    dsl.importer(artifact_uri="data.csv", artifact_class=dsl.Dataset)
