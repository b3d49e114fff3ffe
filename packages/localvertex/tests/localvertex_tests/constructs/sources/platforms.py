"""The second document: settings of a Kubernetes cluster, honoured, ignored or refused; and TaskConfig."""

from typing import Any

from kfp import dsl
from localvertex_tests.constructs.construct import construct

from vertex_testing.runs import STEP


@dsl.component(**STEP)
def echo(text: str) -> str:
    return text


def _settings(label: str, settings: dict[str, Any], **config: Any) -> Any:
    """Return an edit that adds a platform document with settings of one executor."""

    def change(_: dict[str, Any]) -> dict[str, Any]:
        deployment = {"deploymentSpec": {"executors": {label: settings}}}
        return {"platforms": {"kubernetes": {"platform": "kubernetes", **deployment, **config}}}

    return change


@construct(
    outputs={"Output": "a"},
    warnings=tuple(
        f"{name} has no effect locally" for name in ("activeDeadlineSeconds", "nodeSelector", "imagePullPolicy")
    ),
    edit=_settings(
        "exec-echo",
        {"activeDeadlineSeconds": "1", "nodeSelector": {"labels": {"kind": "gpu"}}, "imagePullPolicy": "Always"},
    ),
)
@dsl.pipeline(name="kubernetes-settings")
def kubernetes_settings() -> str:
    return echo(text="a").output


@construct(
    refused="secretAsEnv: settings of a Kubernetes cluster cannot be honoured locally",
    edit=_settings("exec-echo", {"secretAsEnv": [{"secretName": "own", "keyToEnv": []}]}),
    kfp_local={"Output": "a"},
)
@dsl.pipeline(name="kubernetes-secret")
def kubernetes_secret() -> str:
    return echo(text="a").output


@construct(
    refused="config: settings of a Kubernetes cluster cannot be honoured locally",
    edit=_settings("exec-echo", {}, config={"own": True}),
    kfp_local={"Output": "a"},
)
@dsl.pipeline(name="platform-config")
def platform_config() -> str:
    return echo(text="a").output


@construct(
    outputs={"Output": "a"},
    warnings=(
        *("resourceTtlOnCompletion has no effect", "resourceTtlOnSuccess has no effect"),
        "resourceTtlOnFailure has no effect",
    ),
)
@dsl.pipeline(
    name="time-to-live",
    pipeline_config=dsl.PipelineConfig(
        ttl_seconds_after_finished=60, ttl_seconds_after_success=60, ttl_seconds_after_failure=60
    ),
)
def time_to_live() -> str:
    return echo(text="a").output


@construct(outputs={"Output": "a"}, warnings=("pipelineConfig.activeDeadlineSeconds has no effect locally",))
@dsl.pipeline(name="deadline-of-the-pipeline", pipeline_config=dsl.PipelineConfig(active_deadline_seconds=600))
def deadline_of_the_pipeline() -> str:
    return echo(text="a").output


@construct(refused="pipelineConfig.workspace: settings of a Kubernetes cluster", kfp_local={"Output": "a"})
@dsl.pipeline(
    name="workspace",
    pipeline_config=dsl.PipelineConfig(
        workspace=dsl.WorkspaceConfig(
            size="1Gi", kubernetes=dsl.KubernetesWorkspaceConfig(pvcSpecPatch={"accessModes": ["ReadWriteMany"]})
        )
    ),
)
def workspace() -> str:
    return echo(text="a").output


@construct(refused="workspace", kfp_local={"Output": ...})
@dsl.pipeline(name="workspace-path", pipeline_config=dsl.PipelineConfig(workspace=dsl.WorkspaceConfig(size="1Gi")))
def workspace_path() -> str:
    return echo(text=dsl.WORKSPACE_PATH_PLACEHOLDER).output


@dsl.component(
    **STEP, task_config_passthroughs=[dsl.TaskConfigPassthrough(field=dsl.TaskConfigField.ENV, apply_to_task=True)]
)
def configured(task_config: dsl.TaskConfig) -> str:
    return repr(task_config.env)


@construct(refused="taskConfigPassthroughs", kfp_local={"Output": "None"})
@dsl.pipeline(name="task-config")
def task_config() -> str:
    return configured().set_env_variable("FIRST", "one").output


def _component_platforms(document: dict[str, Any]) -> None:
    document["components"]["comp-echo"]["singlePlatformSpecs"] = [{"platform": "kubernetes"}]


@construct(refused="singlePlatformSpecs", edit=_component_platforms, kfp_local={"Output": "a"})
@dsl.pipeline(name="platforms-of-a-component")
def platforms_of_a_component() -> str:
    return echo(text="a").output
