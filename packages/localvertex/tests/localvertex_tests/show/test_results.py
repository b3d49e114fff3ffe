"""What a run computed."""

from typing import Any

import pytest

from localvertex.show import results
from localvertex.store import record


@pytest.mark.parametrize(
    ("metrics", "expected"),
    [
        ({}, ""),
        ({"note": "good"}, ""),
        ({"loss": 0.5, "f1": 0.25}, "loss 0.5"),
        ({"loss": 0.5, "val_accuracy": 0.123456789, "accuracy_top5": 1}, "val_accuracy 0.12346"),
        ({"accuracy": 0.88, "baseline_accuracy": 0.9, "baseline_class": "cat"}, "accuracy 0.88 (baseline 0.9)"),
    ],
)
def test_the_main_metric_is_the_accuracy_or_else_the_first(metrics: dict[str, Any], expected: str) -> None:
    entries = [{"task": "t", "artifact": "m", "name": name, "value": value} for name, value in metrics.items()]
    assert results.main_metric({"metrics": entries}) == expected


def test_the_parent_of_an_upload_is_not_one_of_its_models() -> None:
    parent, other = "projects/p/locations/r/models/pets", "projects/p/locations/r/models/cats"
    tasks = [
        {
            "path": name,
            "kind": "step",
            "state": "SUCCEEDED",
            "outputs": {
                "artifacts": {
                    "model": [
                        {"uri": name, "type": {"schemaTitle": "google.VertexModel"}, "metadata": {"resourceName": name}}
                    ]
                }
            },
        }
        for name in (parent, f"{parent}@2", other, "")
    ]
    assert [each["resource_name"] for each in record.models(tasks)] == [f"{parent}@2", other]
