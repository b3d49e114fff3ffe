"""A pipeline with one training job of two replicas, whose speed the test decides while it runs."""

import json
from pathlib import Path
from typing import Any

from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl

from vertex_testing.server import Server, wait_until

TASK, PRIMARY, WORKER = "custom-training-job", "workerpool0-0", "workerpool1-0"

TRAINER = (Path(__file__).parents[2] / "jobs" / "trainer.py").read_text()
NUM_STEPS = 300
RESULT = {"final_step": NUM_STEPS, "weights": sum(step**2 for step in range(1, NUM_STEPS + 1))}


@dsl.pipeline(name="one-job")
def one_job(pools: list, base: str) -> None:
    CustomTrainingJobOp(
        display_name="train",
        worker_pool_specs=pools,
        base_output_directory=base,
        restart_job_on_worker_restart=True,
        strategy="SPOT",
    )


class Training:
    """The job and its files: its last step waits until the test lets it end."""

    def __init__(self, folder: Path) -> None:
        self.base, self._pace, self._patience = folder / "out", folder / "pace", folder / "patience"
        self._pace.write_text("0.05")
        self._patience.touch()

    def notice_silence(self, watch: "Watch") -> None:
        """Let the primary notice that its frozen peer is silent. Later no peer of a loaded machine is too slow."""

        def num_ends(job: Any) -> int:
            return len(job["status"]["replicas"][0]["exit_codes"])

        before = num_ends(watch.wait(lambda job: True))
        self._patience.unlink()
        watch.wait(lambda job: num_ends(job) > before)
        self._patience.touch()

    def hurry(self) -> None:
        """Let it train the remaining steps at once."""
        written = self._pace.with_suffix(".new")
        written.write_text("0")
        written.replace(self._pace)

    @property
    def pools(self) -> list[dict[str, Any]]:
        """The worker pools: a chief and a worker."""
        command = ["python", "-c", TRAINER, str(NUM_STEPS), str(self._pace), "10", str(self._patience)]
        container = {"image_uri": "gcr.io/x/y:1", "command": command}
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
        return [pool, pool]

    @property
    def result(self) -> Any:
        """Its record at its end; None before."""
        path = self.base / "checkpoints" / "result.json"
        return json.loads(path.read_text()) if path.exists() else None

    def start(self, server: Server, spec: dict[str, Any]) -> "Watch":
        """Start it as a step of the run `one`."""
        values = {"pools": self.pools, "base": str(self.base)}
        body = {"pipelineSpec": spec, "runtimeConfig": {"parameterValues": values}}
        answer = server.call("POST", "pipelineJobs?pipelineJobId=one", body)
        assert answer.status_code == 200, answer.text
        return self.watch(server)

    @staticmethod
    def watch(server: Server) -> "Watch":
        """Watch the run `one`, which a terminal may have started."""
        return Watch(server, f"/local/runs/one/job?task={TASK}", "/local/runs/one:fault", {"task": TASK})

    def start_alone(self, server: Server) -> "Watch":
        """Start it as a custom job of the API."""
        base = {"outputUriPrefix": str(self.base)}
        scheduling = {"restartJobOnWorkerRestart": True, "strategy": "SPOT"}
        spec = {"workerPoolSpecs": self.pools, "baseOutputDirectory": base, "scheduling": scheduling}
        answer = server.call("POST", "customJobs", {"displayName": "train", "jobSpec": spec})
        assert answer.status_code == 200, answer.text
        path = f"/local/jobs/{answer.json()['name'].rpartition('/')[2]}"
        return Watch(server, path, f"{path}:fault", {})


class Watch:
    """Interface of the tests to a job: read its state, and break it."""

    def __init__(self, server: Server, path: str, fault_path: str, body: dict[str, str]) -> None:
        self._server, self._path, self._fault_path, self._body = server, path, fault_path, body

    @property
    def number(self) -> str:
        """The id of a job of the API."""
        return self._path.rpartition("/")[2]

    def read(self) -> dict[str, Any]:
        """Return the job; empty before it has started."""
        answer = self._server.request("GET", self._path)
        found: dict[str, Any] = answer.json() if answer.ok else {}
        return found if found.get("status") else {}

    def wait(self, condition: Any) -> Any:
        """Wait until a condition holds for the job."""
        return wait_until(lambda: (job := self.read()) and condition(job) and job)

    def trains(self, num_starts: int) -> Any:
        """Wait until all replicas have trained a step in their current process."""
        return self.wait(
            lambda job: (
                all(each["is_running"] and each["num_starts"] >= num_starts for each in job["status"]["replicas"])
                and [len(each["resumes"]) >= num_starts - 1 for each in job["steps"]] == [True, True]
            )
        )

    def fault(self, **body: Any) -> Any:
        """Ask for a fault."""
        return self._server.request("POST", self._fault_path, json=self._body | body)
