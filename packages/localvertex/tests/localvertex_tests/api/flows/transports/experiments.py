"""Experiments, metadata and tensorboards."""

from typing import Any

from google.api_core import exceptions
from google.cloud import aiplatform
from localvertex_tests.api.flows.transports.flow import flow


def use(experiment: str, **options: Any) -> None:
    """Choose an experiment; without a project the SDK would change to REST."""
    aiplatform.init(project="local-project", experiment=experiment, **{"experiment_tensorboard": False} | options)


@flow([{"run_name": "one", "param.rate": 0.1, "metric.loss": 0.5, "state": "COMPLETE"}])
def experiment_data_frame() -> Any:
    use("frame")
    with aiplatform.start_run("one"):
        aiplatform.log_params({"rate": 0.1})
        aiplatform.log_metrics({"loss": 0.5})
    found = aiplatform.get_experiment_df("frame")
    return found[["run_name", "param.rate", "metric.loss", "state"]].to_dict("records")


@flow([[1, 0.5], [2, 0.25]])
def experiment_time_series() -> Any:
    use("series", experiment_tensorboard=None)
    with aiplatform.start_run("one") as run:
        for step, loss in ((1, 0.5), (2, 0.25)):
            aiplatform.log_time_series_metrics({"loss": loss}, step=step)
        return run.get_time_series_data_frame()[["step", "loss"]].to_numpy().tolist()


@flow([{"rate": 1.0, "layers": 3.0}, {"loss": 0.5}])
def experiment_run_resume() -> Any:
    use("resumed")
    with aiplatform.start_run("one"):
        aiplatform.log_params({"rate": 1})
    with aiplatform.start_run("one", resume=True) as run:
        aiplatform.log_params({"layers": 3})
        aiplatform.log_metrics({"loss": 0.5})
    return [run.get_params(), run.get_metrics()]


@flow(exceptions.AlreadyExists)
def experiment_run_that_exists() -> Any:
    use("doubled")
    for _ in range(2):
        with aiplatform.start_run("one"):
            pass


@flow(exceptions.Conflict)
def experiment_run_that_exists_after_init_without_a_project() -> Any:
    aiplatform.init(experiment="by-rest", experiment_tensorboard=False)
    for _ in range(2):
        with aiplatform.start_run("one"):
            pass


@flow(["labels", [0, 1]])
def experiment_classification_metrics() -> Any:
    use("classified")
    with aiplatform.start_run("one") as run:
        aiplatform.log_classification_metrics(labels=["a", "b"], matrix=[[3, 1], [0, 4]], display_name="labels")
        (found,) = run.get_classification_metrics()
    return [found["display_name"], found["matrix"][1][:1] + found["matrix"][0][1:]]


@flow(["scaled", ["data"], ["model"], ["model"]])
def experiment_artifacts_and_execution() -> Any:
    use("lineage")
    with aiplatform.start_run("one") as run:
        data = aiplatform.Artifact.create("system.Dataset", resource_id="data", uri="gs://staging/rows.csv")
        model = aiplatform.Artifact.create("system.Model", resource_id="model", display_name="layers")
        with aiplatform.start_execution(schema_title="system.ContainerExecution", display_name="scaled") as execution:
            execution.assign_input_artifacts([data])
            execution.assign_output_artifacts([model])
        found = [execution.get_input_artifacts(), execution.get_output_artifacts()]
        listed = aiplatform.Artifact.list(filter='schema_title="system.Model" AND display_name="layers"')
        assert run.get_executions()[0].name == execution.name
    return [execution.display_name, *([each.name for each in artifacts] for artifacts in (*found, listed))]


@flow("estimator")
def experiment_log_model() -> Any:
    from sklearn.linear_model import LinearRegression

    use("models")
    with aiplatform.start_run("one") as run:
        aiplatform.log_model(LinearRegression().fit([[0], [1]], [0, 1]), artifact_id="estimator")
        return run.get_experiment_models()[0].name


@flow(None)
def experiment_that_is_missing() -> Any:
    return aiplatform.Experiment.get("absent")


@flow(exceptions.NotFound)
def experiment_run_that_is_missing() -> Any:
    aiplatform.Experiment.create("empty")
    aiplatform.ExperimentRun("absent", experiment="empty")


@flow(exceptions.NotFound)
def experiment_data_frame_that_is_missing() -> Any:
    aiplatform.get_experiment_df("absent")


@flow([["gone"], None])
def experiment_list_and_delete() -> Any:
    experiment = aiplatform.Experiment.create("gone")
    listed = [each.name for each in aiplatform.Experiment.list() if each.name == "gone"]
    experiment.delete()
    return [listed, aiplatform.Experiment.get("gone")]


@flow(exceptions.InvalidArgument)
def experiment_name_that_is_wrong() -> Any:
    aiplatform.Experiment.create("Wrong Name")


@flow(exceptions.AlreadyExists)
def artifact_that_exists() -> Any:
    for _ in range(2):
        aiplatform.Artifact.create("system.Dataset", resource_id="twice")


@flow(exceptions.InvalidArgument)
def artifact_list_by_metadata_is_refused() -> Any:
    aiplatform.Artifact.list(filter="metadata.layers.number_value=3")


@flow(exceptions.NotFound)
def artifact_delete() -> Any:
    artifact = aiplatform.Artifact.create("system.Dataset", resource_id="deleted")
    artifact.update(metadata={"rows": 3})
    assert artifact.metadata == {"rows": 3}
    artifact.delete()
    aiplatform.Artifact(artifact.resource_name)


@flow("COMPLETE")
def execution_create() -> Any:
    # Without credentials this version of the SDK fails before any request, even on Vertex AI.
    execution = aiplatform.Execution.create(
        "system.ContainerExecution",
        resource_id="executed",
        credentials=aiplatform.initializer.global_config.credentials,
    )
    execution.update(state=aiplatform.gapic.Execution.State.COMPLETE)
    return aiplatform.Execution(execution.resource_name).state.name


@flow(["charts", ["charts"]])
def tensorboard_create_and_list() -> Any:
    board = aiplatform.Tensorboard.create("charts", labels={"team": "vision"})
    return [
        board.display_name,
        [each.display_name for each in aiplatform.Tensorboard.list(filter="labels.team=vision")],
    ]


@flow({"loss": [0.5, 0.25]})
def tensorboard_time_series() -> Any:
    board = aiplatform.Tensorboard.create("points")
    experiment = aiplatform.TensorboardExperiment.create("experiment", board.resource_name)
    run = aiplatform.TensorboardRun.create("run", experiment.resource_name)
    run.create_tensorboard_time_series("loss")
    for step, loss in enumerate((0.5, 0.25)):
        run.write_tensorboard_scalar_data({"loss": loss}, step=step)
    return {name: [point.scalar.value for point in each.values] for name, each in run.read_time_series_data().items()}


@flow(exceptions.NotFound)
def tensorboard_delete() -> Any:
    board = aiplatform.Tensorboard.create("deleted")
    board.delete()
    aiplatform.Tensorboard(board.resource_name).display_name  # noqa: B018


@flow(exceptions.MethodNotImplemented)
def tensorboard_update_is_refused() -> Any:
    aiplatform.Tensorboard.create("updated").update(display_name="changed")
