"""A task with the launcher of a custom job becomes a local job."""

import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import (
    CustomTrainingJobOp,
    create_custom_training_job_from_component,
)
from kfp import dsl
from kfp.dsl import Model, Output

from localvertex.errors import Refused
from localvertex.jobs.faults.faults import parse
from localvertex.show.terminal import summary
from vertex_testing.html import report_data
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask

MACHINE = {"machine_type": "n1-standard-4"}

DUMP = (
    "import json, os, sys; names = ('AIP_MODEL_DIR', 'AIP_CHECKPOINT_DIR', 'AIP_TENSORBOARD_LOG_DIR', "
    "'CLOUD_ML_PROJECT_ID', 'CLUSTER_SPEC', 'TF_CONFIG', 'GREETING'); "
    "program = [os.path.realpath(sys.base_prefix), list(sys.version_info[:3])]; "
    "json.dump([program, sys.argv[1:], {n: os.environ.get(n) for n in names}], open(sys.argv[1], 'w'))"
)


def pool(code: str, *arguments: str, **container: Any) -> dict:
    """A worker pool of one replica that runs this Python code."""
    container_spec = {
        "image_uri": "gcr.io/x/y:1",
        "command": ["python", "-c", code],
        "args": list(arguments),
        **container,
    }
    return {"machine_spec": dict(MACHINE), "replica_count": 1, "container_spec": container_spec}


@dsl.pipeline(name="job")
def job(pools: list, base: str = "", name: str = "train", restart: bool = False) -> None:
    CustomTrainingJobOp(
        display_name=name, worker_pool_specs=pools, base_output_directory=base, restart_job_on_worker_restart=restart
    )


@dsl.pipeline(name="capacity")
def capacity(pools: list, strategy: str = "STANDARD", resource: str = "", wait: str = "3600s") -> None:
    CustomTrainingJobOp(
        display_name="train",
        worker_pool_specs=pools,
        strategy=strategy,
        max_wait_duration=wait,
        persistent_resource_id=resource,
    )


@dsl.component(**STEP)
def plan(pools: list) -> list:
    return pools


@dsl.pipeline(name="planned-job")
def planned_job(pools: list) -> None:
    CustomTrainingJobOp(display_name="train", worker_pool_specs=plan(pools=pools).output)


def test_a_replica_gets_the_same_environment_as_on_the_service(
    execute: Execute, task: FindTask, tmp_path: Path
) -> None:
    dumped = tmp_path / "seen.json"
    env = [{"name": "GREETING", "value": "hello"}]
    pools = [pool(DUMP, str(dumped), "--quote='it\"s'", env=env)]
    record = execute(job, {"pools": pools, "base": f"{tmp_path}/out"}, project="my-project", region="europe-west4")
    assert record["state"] == "SUCCEEDED", record["error"]
    program, arguments, seen = json.loads(dumped.read_text())
    assert program == [os.path.realpath(sys.base_prefix), list(sys.version_info[:3])]
    assert arguments == [str(dumped), "--quote='it\"s'"]
    assert seen["AIP_MODEL_DIR"] == f"{tmp_path}/out/model/"
    assert seen["AIP_CHECKPOINT_DIR"] == f"{tmp_path}/out/checkpoints/"
    assert seen["AIP_TENSORBOARD_LOG_DIR"] == f"{tmp_path}/out/logs/"
    assert seen["CLOUD_ML_PROJECT_ID"] == "my-project"
    assert seen["GREETING"] == "hello"
    assert seen["TF_CONFIG"] is None
    cluster = json.loads(seen["CLUSTER_SPEC"])
    assert cluster["task"] == {"type": "workerpool0", "index": 0}
    assert list(cluster["cluster"]) == ["workerpool0"]
    assert json.loads(cluster["job"])["worker_pool_specs"][0]["replica_count"] == 1
    assert (tmp_path / "out").is_dir()
    resources = json.loads(task(record, "custom-training-job")["outputs"]["parameters"]["gcp_resources"])
    uri = resources["resources"][0]["resourceUri"]
    prefix = "https://europe-west4-aiplatform.googleapis.com/v1/projects/my-project/locations/europe-west4/customJobs/"
    assert uri.startswith(prefix)


def test_a_replica_has_its_own_log(execute: Execute, task: FindTask, work_dir: Path) -> None:
    record = execute(job, {"pools": [pool("print('training')")]}, run_id="logged")
    folder = (work_dir / "logged" / task(record, "custom-training-job")["log"]).parent
    assert (folder / "workerpool0-0.log").read_text() == "training\n"


def test_quotes_and_line_feeds_in_values_reach_the_job_and_the_quote_causes_a_warning(execute: Execute) -> None:
    record = execute(job, {"pools": [pool("print(1)")], "name": 'the "best"\nmodel \\ ever'})
    assert record["state"] == "SUCCEEDED", record["error"]
    warned = [text for text in record["warnings"] if "display_name" in text]
    assert len(warned) == 1
    assert "Vertex AI inserts it into the payload unescaped" in warned[0]


COUNT = "import pathlib, sys; p = pathlib.Path(sys.argv[1]); p.write_text(p.read_text() + 'x' if p.exists() else 'x'); "


@pytest.mark.parametrize(
    ("code", "num_starts", "state", "exit_code"),
    [
        ("sys.exit(2)", 1, "FAILED", 2),
        ("sys.exit(1)", 1, "FAILED", 1),
        ("sys.exit(0 if len(p.read_text()) == 3 else 134)", 3, "SUCCEEDED", 0),
        ("import os; os.kill(os.getpid(), 9) if len(p.read_text()) < 2 else None", 2, "SUCCEEDED", 0),
    ],
)
def test_exit_codes_decide_between_restart_and_end(
    execute: Execute, task: FindTask, tmp_path: Path, code: str, num_starts: int, state: str, exit_code: int
) -> None:
    counter = tmp_path / "counter"
    record = execute(job, {"pools": [pool(COUNT + code, str(counter))]})
    found = task(record, "custom-training-job")
    assert (found["state"], found["exit_code"], len(counter.read_text())) == (state, exit_code, num_starts)


def test_the_error_of_a_failed_job_quotes_the_last_line_of_its_replica(execute: Execute) -> None:
    record = execute(job, {"pools": [pool("import sys; sys.exit('no images in gs://b/x')")]})
    reason = "exit code 1; last line of its log: no images in gs://b/x"
    assert record["error"] == f"custom-training-job: workerpool0-0: {reason}"


GPU = {"machine_type": "g2-standard-8", "accelerator_type": "NVIDIA_L4", "accelerator_count": 1}
ANY = {"reservation_affinity": {"reservation_affinity_type": "ANY_RESERVATION"}}
SPECIFIC = {
    "reservation_affinity_type": "SPECIFIC_RESERVATION",
    "key": "compute.googleapis.com/reservation-name",
    "values": ["projects/p/zones/us-central1-a/reservations/r"],
}


@pytest.mark.parametrize(
    ("machine", "arguments"),
    [
        (GPU, {"strategy": "FLEX_START"}),
        (GPU, {"resource": "pool-1"}),
        (GPU | ANY, {}),
        (GPU | {"reservation_affinity": SPECIFIC}, {}),
    ],
)
def test_fields_about_capacity_and_disk_run_and_change_nothing_here(
    execute: Execute, machine: dict[str, Any], arguments: dict[str, str]
) -> None:
    disk = {"boot_disk_type": "pd-ssd", "boot_disk_size_gb": 200}
    pools = [pool("print('trained')") | {"machine_spec": machine, "disk_spec": disk}]
    assert execute(capacity, {"pools": pools, **arguments})["state"] == "SUCCEEDED"


def test_a_reservation_on_a_persistent_resource_does_not_run(execute: Execute) -> None:
    pools = [pool("print('trained')") | {"machine_spec": GPU | ANY}]
    with pytest.raises(Refused, match="ANY_RESERVATION and persistent_resource_id exclude each other"):
        execute(capacity, {"pools": pools, "resource": "pool-1"})


@pytest.mark.parametrize(
    ("pools", "message"),
    [
        ([], "the first pool is empty or missing"),
        ([{"machine_spec": MACHINE, "replica_count": 1}], "container_spec"),
        ([pool("1") | {"python_package_spec": {"python_module": "x"}}], "container_spec and python_package_spec"),
        ([pool("1") | {"replicas": 2}], "WorkerPoolSpec has no field 'replicas'; did you mean replica_count?"),
        ([pool("1") | {"replica_count": "many"}], "found 'many'; expected a whole number"),
        ([pool("1", command=[])], "[0].container_spec: the command is empty, and the entry point of gcr.io/x/y:1"),
        ([pool("1"), {}, pool("1")], "empty pool"),
        (
            [pool("1") | {"machine_spec": {"machine_type": "n1-standard-4", "accelerator_type": "NVIDIA_TESLA_T4"}}],
            "accelerator_type is NVIDIA_TESLA_T4, but accelerator_count is missing",
        ),
    ],
)
def test_a_job_that_cannot_run_fails_before_a_process_starts(
    execute: Execute, task: FindTask, work_dir: Path, pools: list[dict[str, Any]], message: str
) -> None:
    with pytest.raises(Refused) as caught:
        execute(job, {"pools": pools})
    (reason,) = [each for each in caught.value.reasons if message in each]
    assert "\n" not in reason
    assert not work_dir.exists()
    # What a step plans is known when the job starts.
    record = execute(planned_job, {"pools": pools}, run_id="refused")
    assert (record["state"], record["failed_task"]) == ("FAILED", "custom-training-job")
    assert message in record["error"]
    assert not list((work_dir / "refused").rglob("workerpool*.log"))


def test_every_mistake_of_literal_jobs_is_named_at_once(compiled: Compile, command: Command, tmp_path: Path) -> None:
    @dsl.pipeline(name="mistakes")
    def mistakes(machine: str = "n1-standard-4") -> None:
        with dsl.If(machine == "never"):
            CustomTrainingJobOp(display_name="a", worker_pool_specs=[pool("1") | {"replica_count": 2, "color": "red"}])
        gpu = {"machine_type": machine, "accelerator_type": "NVIDIA_TESLA_T4", "accelerator_count": 3}
        CustomTrainingJobOp(display_name="b", worker_pool_specs=[pool("1", command=[]) | {"machine_spec": gpu}])

    compiled(mistakes)
    done = command("run", "pipeline.json", "--parameter", "machine=n1-standard-3")
    assert done.returncode == 2
    for text in (
        "replica_count",
        "has no field 'color'",
        "n1-standard-3",
        "the command is empty, and the entry point of gcr.io/x/y:1 is not known locally",
    ):
        assert text in done.stderr
    assert not (tmp_path / "runs").exists()


@dsl.component(**STEP)
def train(n: int, model: Output[Model]) -> str:
    import os

    with open(model.path, "w") as file:
        file.write("weights")
    model.metadata["layers"] = n
    return os.environ["CLUSTER_SPEC"][:1]


wrapped = create_custom_training_job_from_component(train, display_name="train", machine_type="n1-standard-4")


@dsl.pipeline(name="wrapped")
def wraps(n: int = 2) -> None:
    wrapped(n=n)


def test_a_component_wrapped_as_a_custom_job_runs_and_hands_out_its_outputs(execute: Execute, task: FindTask) -> None:
    record = execute(wraps)
    assert record["state"] == "SUCCEEDED", record["error"]
    outputs = task(record, "train")["outputs"]
    assert outputs["parameters"]["Output"] == "{"
    assert Path(outputs["artifacts"]["model"][0]["uri"]).read_text() == "weights"
    assert outputs["artifacts"]["model"][0]["metadata"] == {"layers": 2}


@dsl.pipeline(name="misplaced")
def misplaced(pools: list) -> None:
    CustomTrainingJobOp(display_name="t", worker_pool_specs=pools).set_env_variable("A", "b")


def test_settings_that_reach_only_the_launcher_cause_a_warning(execute: Execute) -> None:
    record = execute(misplaced, {"pools": [pool("print(1)")]})
    assert [text for text in record["warnings"] if "apply to the launcher, not to the job" in text]


TRAINER = (Path(__file__).parents[1] / "jobs" / "trainer.py").read_text()


def trainers(num_workers: int, patience: Path) -> list[dict]:
    """Pools of a small trainer that writes events, a chief and workers; its first processes stay at step 12."""
    patience.touch()
    one = pool(TRAINER, "30", "0.02", "5", str(patience), "12")
    return [one, one | {"replica_count": num_workers}]


def test_a_job_of_several_machines_survives_faults_and_the_page_shows_its_goodput(
    execute: Execute, task: FindTask, tmp_path: Path, work_dir: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    parameters = {"pools": trainers(2, tmp_path / "patience"), "base": f"{tmp_path}/out", "restart": True}
    record = execute(job, parameters, faults=(parse("SIGKILL workerpool1-1 at step 12"),), run_id="machines")
    assert record["state"] == "SUCCEEDED", record["error"]
    assert not [text for text in record["warnings"] if "max_wait_duration" in text]
    found = task(record, "custom-training-job")["custom_job"]
    assert found["state"] == "JOB_STATE_SUCCEEDED"
    assert [each["num_starts"] for each in found["replicas"]] == [2, 2, 2]
    assert found["goodput"]["num_steps"] == 30
    assert "fault: SIGKILL workerpool1-1 at step 12" in [each["text"] for each in found["events"]]
    (shown,) = [each for name, each in report_data(work_dir / "machines" / "run.html")["events"] if name == "job"]
    assert (len(shown["timeline"]), shown["goodput"]["num_steps"]) == (3, 30)
    assert [each["text"] for each in shown["events"]] == [each["text"] for each in found["events"]]
    summary.show(record)
    assert "custom-training-job: Goodput" in capsys.readouterr().out


def test_a_payload_in_camel_case_runs(execute: Execute) -> None:
    camel = pool("print(1)") | {"diskSpec": {"bootDiskSizeGb": "100"}}
    record = execute(job, {"pools": [camel]})
    assert record["state"] == "SUCCEEDED", record["error"]


def test_the_image_of_a_worker_pool_is_mapped_to_a_local_command(
    execute: Execute, task: FindTask, tmp_path: Path
) -> None:
    dumped, words = tmp_path / "seen.json", "import json, sys; json.dump(sys.argv[1:], open(sys.argv[1], 'w'))"
    closed = pool("", "--epochs=3", image_uri="gcr.io/x/closed:1", command=[])
    images = {"gcr.io/x/closed:1": (sys.executable, "-c", words, str(dumped))}
    record = execute(job, {"pools": [closed]}, command_prefixes=images)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert json.loads(dumped.read_text()) == [str(dumped), "--epochs=3"]
    execute(
        job,
        {"pools": [closed | {"container_spec": closed["container_spec"] | {"command": ["train"]}}]},
        command_prefixes=images,
    )
    assert json.loads(dumped.read_text()) == [str(dumped), "train", "--epochs=3"]
    with pytest.raises(Refused, match=r"--image gcr\.io/x/closed:1=COMMAND"):
        execute(job, {"pools": [closed]}, use_cache=False)


@dsl.container_component
def count_to(n: int, rate: float):  # noqa: ANN201
    return dsl.ContainerSpec(
        image="any",
        command=["sh", "-c", 'test "$0 $1" = "2 0.5"'],
        args=[n, rate],  # type: ignore[list-item]
    )


wrapped_container = create_custom_training_job_from_component(count_to, machine_type="n1-standard-4")


@dsl.pipeline(name="wrapped-container")
def wraps_container(n: int = 2, rate: float = 0.5) -> None:
    wrapped_container(n=n, rate=rate)


def test_numbers_among_the_arguments_of_a_wrapped_container_are_text(execute: Execute) -> None:
    """They are in quotes in its worker pools; the check before the run refused them as numbers."""
    assert execute(wraps_container)["state"] == "SUCCEEDED"
