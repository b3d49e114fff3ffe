"""The models that the console shows: origin, metrics, endpoints and files of each version, whatever is damaged."""

import json
from typing import Any

import pytest
from localvertex_tests.support.run_records import TASK, run_record, write

from localvertex.api.rest.errors import ApiError, Status
from localvertex.console.local_route import LocalCall
from localvertex.store.record import now
from vertex_testing.server import wait_until

HOSTILE = "<script>alert('x')</script>"

FINGERPRINT = "f" * 32 + "0" * 32


def record(room: Any, run: str, **fields: Any) -> None:
    """Write the record of a run."""
    write(room.work_dir / run / "run.json", run_record(room.work_dir, run, "2026-01-01T00:00:00.000Z", **fields))


def dataset_step(fingerprint: str) -> dict[str, Any]:
    """Return a step that wrote a dataset."""
    artifact = {"type": {"schemaTitle": "system.Dataset"}, "uri": "/d", "metadata": {"fingerprint": fingerprint}}
    return TASK | {"outputs": {"parameters": {}, "artifacts": {"dataset": [artifact]}}}


def listed(room: Any) -> list[dict[str, Any]]:
    """Return the models of the list."""
    found: list[dict[str, Any]] = room.models.list_all(LocalCall())["models"]
    return found


def test_a_version_names_its_run_dataset_parameters_endpoints_and_files(room: Any) -> None:
    files = room.work_dir / "trains" / "export"
    (files / "assets.extra").mkdir(parents=True)
    (files / "assets.extra" / "model.json").write_text(json.dumps({"class_names": ["cat", "dog"]}))
    (files / "weights").write_bytes(b"12345")
    record(
        room, "trains", uuid="77", parameters={"epochs": 3}, tasks=[dataset_step(FINGERPRINT), dataset_step("e" * 64)]
    )
    labels = {"dataset": FINGERPRINT[:32]}
    room.add(artifact_uri=str(files), uploaded_by="77/upload", labels=labels, version_description="small")
    room.deploy("one", "1", traffic=0)
    room.deploy("two", "1", deployed="8")
    room.deploy("three", "2")
    found = room.get("default")
    assert (found["version"], found["run"], found["datasets"]) == ("1", "trains", [FINGERPRINT])
    assert found["parameters"] == {"epochs": 3}
    assert [(each["display_name"], each["traffic"]) for each in found["endpoints"]] == [
        ("endpoint one", 0),
        ("endpoint two", 100),
    ]
    assert [(each["name"], each["size"]) for each in found["files"]][1] == ("weights", 5)
    assert (len(found["files"]), found["labels"], found["version_description"]) == (2, labels, "small")
    assert (found["problem"], found["aliases_problem"]) == ("", "")
    (row,) = listed(room)
    assert (row["num_versions"], row["default"], row["champion"], row["num_endpoints"]) == (1, "1", None, 3)


def test_the_run_is_the_one_that_uploaded_or_else_wrote_or_else_registered_it(room: Any) -> None:
    (room.work_dir / "wrote").mkdir(parents=True)
    (room.work_dir / "wrote" / "model").write_text("x")
    resource = "projects/p/locations/r/models/m@3"
    model = {"task": "t", "artifact": "a", "uri": "u", "resource_name": resource}
    record(room, "uploaded", uuid="1")
    record(room, "wrote", uuid="2", tasks=[dataset_step("d")])
    record(room, "registered", uuid="3", models=[model])
    # A later run that imports the version is not where it came from.
    later = run_record(room.work_dir, "imports", "2026-02-01T00:00:00.000Z", uuid="4", models=[model])
    write(room.work_dir / "imports" / "run.json", later)
    room.add(uploaded_by="1/a/step", artifact_uri=str(room.work_dir / "wrote" / "model"))
    room.add(artifact_uri=str(room.work_dir / "wrote" / "model"))
    room.add()
    room.add(uploaded_by="9/deleted run")
    rows = room.get("1")["versions"]
    assert [(row["version"], row["run"], row["datasets"]) for row in rows] == [
        ("4", "", []),
        ("3", "registered", []),
        ("2", "wrote", ["d"]),
        ("1", "uploaded", []),
    ]


def test_metrics_are_those_of_the_newest_evaluation_or_else_of_the_run(room: Any) -> None:
    metrics = [{"task": "t", "artifact": "a", "name": "accuracy", "value": 0.5}]
    record(room, "trains", uuid="77", metrics=metrics)
    versions = room.add(uploaded_by="77/upload")
    assert room.get()["metrics"] == {}
    assert room.get()["run_metrics"] == {"accuracy": 0.5}
    first = versions.evaluate("1", {"display_name": "first", "metrics": {"auPrc": 0.25}})
    evaluated = now()
    wait_until(lambda: now() > evaluated)  # times have milliseconds
    confidence = [{"confidenceThreshold": 0.0, "maxPredictions": 1, "accuracy": 0.75, "text": "no"}]
    versions.evaluate("1", {"metrics": {"logLoss": 0.125, "is_good": True, "confidenceMetrics": confidence}})
    found = room.get()
    assert found["metrics"] == {"accuracy": 0.75, "logLoss": 0.125}
    assert sorted(each["name"] for each in found["evaluations"]) == ["", "first"]
    (room.work_dir / "models/m/1/evaluations" / f"{first}.json").write_text("{")
    problems = [each["problem"] for each in room.get()["evaluations"]]
    assert sum("is damaged" in each for each in problems) == 1
    assert room.get()["metrics"] == found["metrics"]


def test_what_is_damaged_is_named_and_the_rest_is_shown(room: Any) -> None:
    room.add()
    room.add(aliases=("champion",))
    (room.work_dir / "models/m/1/model.json").write_text("[")
    room.deploy("one", "2")
    (room.work_dir / "endpoints/one/endpoint.json").write_text("{}")
    (room.work_dir / "broken").mkdir()
    (room.work_dir / "broken" / "run.json").write_text("no")
    found = room.get("1")
    assert "this version is damaged" in found["problem"]
    assert [bool(row["problem"]) for row in found["versions"]] == [False, True]
    assert room.get("champion")["endpoints"] == []
    (room.work_dir / "models/m/aliases.json").write_text("7")
    found = room.get("champion")
    assert (found["version"], found["aliases"]) == ("2", [])
    assert "the aliases are damaged" in found["aliases_problem"]
    assert "the aliases are damaged" in listed(room)[0]["problem"]
    assert room.get("1")["version"] == "1"


def test_three_hundred_versions_are_listed_the_newest_first(room: Any) -> None:
    for number in range(1, 301):
        write(room.work_dir / "models/many" / str(number) / "model.json", {"display_name": "many", "version": number})
    found = room.get("7", model="many")
    assert [int(row["version"]) for row in found["versions"]] == list(range(300, 0, -1))
    assert (found["version"], listed(room)[0]["num_versions"]) == ("7", 300)


def test_hostile_names_stay_text_and_odd_types_do_no_harm(room: Any) -> None:
    versions = room.add(name="plain")
    versions.change_shared({"display_name": HOSTILE, "description": HOSTILE, "labels": {HOSTILE: HOSTILE}})
    found = room.get(model="plain")
    assert (found["display_name"], found["description"], found["labels"]) == (HOSTILE, HOSTILE, {HOSTILE: HOSTILE})
    odd = {"display_name": ["x"], "labels": 3, "source_uri": 7, "uploaded_by": None, "create_time": {}}
    write(room.work_dir / "models/odd/1/model.json", odd)
    write(room.work_dir / "models" / HOSTILE.replace("/", "") / "1" / "model.json", {"display_name": "x"})
    assert {row["id"] for row in listed(room)} == {"plain", "odd"}
    assert room.get(model="odd")["version"] == "1"


@pytest.mark.parametrize("version", ["2", "champion", "0", "01"])
def test_a_version_that_does_not_exist_is_not_found(room: Any, version: str) -> None:
    room.add()
    with pytest.raises(ApiError) as refused:
        room.get(version)
    assert refused.value.status is Status.NOT_FOUND
    with pytest.raises(ApiError):
        room.get(model="other")
