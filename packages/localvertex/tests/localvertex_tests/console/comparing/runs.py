"""Writes runs as their steps leave them: with metrics, files of predictions, and event logs of a custom job."""

import json
from pathlib import Path
from typing import Any

from localvertex_tests.support.run_records import TASK, run_record

from localvertex.console.comparing import predictions


def line(name: str, predicted: str, probability: float = 0.9, *, label: str = "cat", **more: Any) -> dict[str, Any]:
    return {"file_name": name, "label": label, "predicted": predicted, "probability": probability, **more}


def metric(name: str, value: Any) -> dict[str, Any]:
    return {"task": "evaluate", "artifact": "metrics", "name": name, "value": value}


class Runs:
    """Writes runs with one step each, whose output `found` is a file of predictions."""

    def __init__(self, work_dir: Path) -> None:
        self.work_dir = work_dir

    def add(
        self, run_id: str, lines: list[Any] | None = None, *, job: dict[str, Any] | None = None, **fields: Any
    ) -> dict[str, Any]:
        """Write a run and return its record."""
        folder = self.work_dir / run_id / "train"
        (folder / "images").mkdir(parents=True, exist_ok=True)
        artifacts = {"images": [{"uri": str(folder / "images"), "type": {"schemaTitle": "system.Dataset"}}]}
        if lines is not None:
            (folder / "found").write_text(
                "".join(f"{each if isinstance(each, str) else json.dumps(each)}\n" for each in lines)
            )
            artifacts["found"] = [{"uri": str(folder / "found"), "type": {"schemaTitle": "system.Artifact"}}]
        task = TASK | {"outputs": {"parameters": {}, "artifacts": artifacts}} | (job or {})
        content = run_record(self.work_dir, run_id, "2026-01-01T00:00:00.000Z", **({"tasks": [task]} | fields))
        (self.work_dir / run_id / "run.json").write_text(json.dumps(content))
        return content | {"id": run_id}

    def predictions(self, *contents: dict[str, Any]) -> dict[str, Any]:
        """Compare the predictions of runs."""
        return predictions.compare(self.work_dir, list(contents))

    def train(self, run_id: str, losses: list[float]) -> dict[str, Any]:
        """Write the event log of a run and return the field of its task that names it."""
        log = self.work_dir / run_id / "train" / "workerpool0-0.jsonl"
        log.parent.mkdir(parents=True, exist_ok=True)
        events: list[dict[str, Any]] = [{"event": "start", "time": 1000.0}]
        for number, loss in enumerate(losses, 1):
            figures = {"loss": loss, "accuracy": 1 - loss / 4, "images_per_second": 500.0 + number, "num_steps": 400}
            steps = {"first_step": number * 10 - 9, "last_step": number * 10, "seconds": 1.0}
            events.append({"event": "steps", "time": 1000.0 + number, **steps, **figures})
        log.write_text("".join(f"{json.dumps(each)}\n" for each in events))
        span = {"start": 999.0, "end": 1000.0 + len(losses) + 1, "exit_code": 0}
        replica = {"name": "workerpool0-0", "is_running": False, "num_starts": 1, "exit_code": 0, "job_id": "a"}
        replica |= {"spans": [span], "event_log": {"path": str(log), "offset": 0}}
        job = {"state": "JOB_STATE_SUCCEEDED", "num_restarts": 0, "num_preemptions": 0, "marks": [], "goodput": {}}
        return {"custom_job": job | {"replicas": [replica]}}
