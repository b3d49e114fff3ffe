"""The steps of the pipeline for any training code, of a run whose training has ended."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from components.any_code import judging, releasing
from components.compare.promotion import Outcome
from components.registry.registry import Registry
from components.release.registration import Recorded
from trainer.results import outcome
from vertex_testing.server import Server

NAME, SERVING, REGION = "any-code", "us-docker.pkg.dev/p/r/serving:1", "us-central1"
DEFAULTS = {
    "deploy_endpoint": "",
    "metric": "accuracy",
    "direction": "maximize",
    "minimum_metric": "",
    "must_improve": False,
    "min_compared_images": 100,
    "force_promotion": False,
}


@dataclass(frozen=True, kw_only=True)
class AnyCodeRun:
    """A run of any training code: what it has written, and the steps after it."""

    folder: Path
    server: Server
    registry: Registry
    name: str

    @property
    def base(self) -> Path:
        """The folder of the run."""
        return self.folder / self.name

    def write(self, metrics: Any, predictions: list[dict[str, Any]] | None = None) -> "AnyCodeRun":
        """Write the model, and what the code says about it."""
        for name in ("checkpoints", "model"):
            (self.base / name).mkdir(parents=True, exist_ok=True)
        (self.base / "model" / "weights").write_text("weights")
        (self.base / "checkpoints" / "result.json").write_text(json.dumps({"metrics": metrics}))
        if predictions is not None:
            lines = "".join(json.dumps(each) + "\n" for each in predictions)
            (self.base / "checkpoints" / "predictions.jsonl").write_text(lines)
        return self

    @property
    def common(self) -> dict[str, str]:
        """Inputs of all steps."""
        return {
            "checkpoint_directory": str(self.base / "checkpoints"),
            "model_name": NAME,
            "serving_image": SERVING,
            "region": REGION,
            "pipeline_root": str(self.server.work_dir),
        }

    def compare(self, **changes: Any) -> Outcome:
        """Call the step `compare`."""
        values = {
            "comparison": str(self.folder / "page.html"),
            "metrics": {},
            "base_output_directory": str(self.base),
            "run_id": f"{self.name:0>16}",
            "inputs_sha256": "d" * 64,
        }
        return judging.compare(**self.common | DEFAULTS | values | changes)

    def upload(self) -> str:
        """Upload the model as the pipeline does, and return the version."""
        options = {"labels": {"team": "vision"}, "base_output_directory": str(self.base)}
        exported = releasing.export(**self.common, **options)
        model = {
            "displayName": NAME,
            "artifactUri": str(self.base / "model"),
            "containerSpec": exported.container,
            "labels": exported.labels,
        }
        parent = {"parentModel": exported.parent_model} if exported.parent_model else {}
        answer = self.server.call("POST", "models:upload", {"model": model} | parent)
        answer.raise_for_status()
        response = answer.json()["response"]
        return f"{response['model']}@{response['modelVersionId']}"

    def record(self, version: str, compared: Outcome, **changes: Any) -> Recorded:
        """Complete the registration."""
        given = {"decision": {}, "is_promoted": compared.is_promoted, "champion": compared.champion}
        given |= {name: DEFAULTS[name] for name in ("metric", "direction", "must_improve", "min_compared_images")}
        given |= {"registered_version": version, "deploy_endpoint": compared.deploy_endpoint}
        return releasing.record(**self.common | given | changes)

    def register(self, compared: Outcome, **changes: Any) -> str:
        """Upload the model and complete its registration, and return the version."""
        assert compared.next == "export"
        return self.record(self.upload(), compared, **changes).registered_version

    @property
    def reason(self) -> str:
        """The noted reason of the comparison."""
        return str(outcome.notes(str(self.base / "checkpoints")).comparison["reason"])
