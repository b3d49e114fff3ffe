"""Writes runs as their steps leave them: with metrics and event logs of a custom job."""

import json
from pathlib import Path
from typing import Any

from localvertex_tests.support.run_records import TASK, run_record


def metric(name: str, value: Any) -> dict[str, Any]:
    return {"task": "evaluate", "artifact": "metrics", "name": name, "value": value}


class Runs:
    """Writes runs with one step each."""

    def __init__(self, work_dir: Path) -> None:
        self.work_dir = work_dir

    def add(self, run_id: str, *, job: dict[str, Any] | None = None, **fields: Any) -> dict[str, Any]:
        """Write a run and return its record."""
        (self.work_dir / run_id / "train").mkdir(parents=True, exist_ok=True)
        task = TASK | (job or {})
        content = run_record(self.work_dir, run_id, "2026-01-01T00:00:00.000Z", **({"tasks": [task]} | fields))
        (self.work_dir / run_id / "run.json").write_text(json.dumps(content))
        return content | {"id": run_id}

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
        job = {"state": "JOB_STATE_SUCCEEDED", "num_restarts": 0, "num_preemptions": 0, "events": [], "goodput": {}}
        return {"custom_job": job | {"replicas": [replica]}}
