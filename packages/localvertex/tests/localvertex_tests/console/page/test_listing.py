"""The rows of the list of runs: right whatever has happened to the records, and read from the index."""

import json
import re
import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.api.rest.test_index import files_opened
from localvertex_tests.console import row_types
from localvertex_tests.support.run_records import TASK, job_record, run_record, write, write_job

from localvertex.api.rest.errors import ApiError
from localvertex.api.rest.store import Store
from localvertex.commands.service import Service
from localvertex.console.events.list_changes import ListChanges
from localvertex.console.local_route import LocalCall
from localvertex.console.runs.actions import RunActions
from localvertex.console.runs.listing import RunList
from localvertex.console.runs.row import EMPTY, FIELDS
from localvertex.store import journal, run_folder
from vertex_testing.server import PARENT

COMPILED = Path(__file__).parents[2] / "constructs" / "compiled"

TIME = "2026-01-01T00:00:00.000Z"

Page = Callable[..., dict[str, Any]]


@pytest.fixture
def runs(tmp_path: Path) -> RunList:
    return RunList(Store(tmp_path))


@pytest.fixture
def page(runs: RunList) -> Page:
    return lambda **query: runs.page(LocalCall(query=query))


def ids(answer: dict[str, Any]) -> list[str]:
    return [each["id"] for each in answer["runs"]]


def test_a_list_of_500_runs_reads_only_what_has_changed(tmp_path: Path, page: Page) -> None:
    for number in range(500):
        write_job(tmp_path, number)
    begun = time.perf_counter()
    with files_opened() as opened:
        assert page()["total_size"] == 500
    first, begun = time.perf_counter() - begun, time.perf_counter()
    # The job and its run, each once.
    assert (len(set(opened)), len(opened)) == (1000, 1000)
    with files_opened() as opened:
        assert len(page(page_size="1000", filter='state="SUCCEEDED"')["runs"]) == 500
    print(f"500 runs: {first:.2f} s without an index, {time.perf_counter() - begun:.3f} s with it")
    assert opened == []
    write_job(tmp_path, 7, state="FAILED")
    with files_opened() as opened:
        assert ids(page(filter="state=FAILED")) == ["run-00007"]
    assert {Path(each).parent.name for each in opened} == {"run-00007", "pipelineJobs"}


def test_a_field_of_a_row_is_one_entry(tmp_path: Path, page: Page) -> None:
    """The type in the scripts and the columns follow from the entries; EMPTY too, by which lists are ordered."""
    assert row_types.FILE.read_text() == row_types.text(), "run python -m localvertex_tests.console.row_types"
    write_job(tmp_path, 1)
    answer = page()
    assert [*answer["runs"][0]] == [each.name for each in FIELDS] == [*EMPTY]
    assert {each["by"] for each in answer["columns"]} == {each.name for each in FIELDS if each.title}
    for each in answer["columns"]:
        assert page(order_by=f"{each['by']} desc")["total_size"] == 1


def test_runs_of_the_api_of_schedules_and_of_a_terminal_are_listed(tmp_path: Path, page: Page) -> None:
    write_job(tmp_path, 1, displayName="by hand")
    write_job(tmp_path, 2, displayName="nightly", scheduleName=f"{PARENT}/schedules/42", state="FAILED")
    write(tmp_path / "terminal" / "run.json", run_record(tmp_path, "terminal", TIME, seconds=2.5))
    (tmp_path / "not-a-run").mkdir()
    found = {each["id"]: each for each in page()["runs"]}
    assert list(found) == ["run-00002", "run-00001", "terminal"]
    assert found["terminal"] == {
        "id": "terminal",
        "name": "terminal",
        "pipeline": "small",
        "state": "SUCCEEDED",
        "create_time": TIME,
        "start_time": TIME,
        "end_time": TIME.replace("T0", "T1"),
        "seconds": 2.5,
        "idle_seconds": 0.0,
        "error": None,
        "note": None,
        "resource": None,
        "schedule": None,
        "is_own": False,
        "labels": {},
        "metrics": {},
        "parameters": {},
    }
    assert found["run-00001"]["resource"] == f"{PARENT}/pipelineJobs/run-00001"
    nightly = found["run-00002"]
    shown = [nightly[each] for each in ("name", "state", "error", "schedule", "is_own")]
    assert shown == ["nightly", "FAILED", "it failed", "42", True]


def test_an_error_in_the_list_is_the_reason_alone(tmp_path: Path, page: Page) -> None:
    task = {**TASK, "path": "group/prepare", "title": "prepare", "state": "FAILED", "exit_code": 2}
    reason = "--source: no such folder"
    task["error"] = f"exit code 2: error: {reason}"
    fields = {"tasks": [task], "failed_task": task["path"], "error": f"prepare: {task['error']}"}
    write(tmp_path / "failed" / "run.json", run_record(tmp_path, "failed", TIME, state="FAILED", **fields))
    others = {"tasks": [7], "failed_task": "prepare", "error": "prepare: exit code 2: as it is"}
    write(tmp_path / "odd" / "run.json", run_record(tmp_path, "odd", TIME, state="FAILED", **others))
    assert {each["id"]: each["error"] for each in page()["runs"]} == {"failed": reason, "odd": others["error"]}


def test_a_name_and_a_note_survive_and_never_touch_the_record(tmp_path: Path, page: Page) -> None:
    run_dir = tmp_path / write_job(tmp_path, 1)
    actions = RunActions(Service(tmp_path, time_factor=1, log=print).pipeline_jobs)
    record = (run_dir / "run.json").read_bytes()

    def note(**body: Any) -> tuple[str, str | None]:
        actions.note(LocalCall(path={"id": run_dir.name}, body=body))
        (row,) = page()["runs"]
        return row["name"], row["note"]

    assert note(name="final", note="the one\nfor the talk") == ("final", "the one\nfor the talk")
    assert ids(page(filter='note:"talk"')) == [run_dir.name]
    assert note(name="", note="only a note") == (run_dir.name, "only a note")
    for wrong in ({"name": 3}, {"name": "a" * 129}, {"name": "a\nb"}, {"note": "a" * 20_001}, {"note": None}):
        with pytest.raises(ApiError, match=next(iter(wrong))):
            note(**{"name": "x", "note": "x", **wrong})
    # A resumed run has another record, and the same note.
    write_job(tmp_path, 1, state="FAILED")
    assert page()["runs"][0]["note"] == "only a note"
    write(run_dir / "note.json", "{")
    assert page()["runs"][0]["note"] is None
    assert note(name="", note="") == (run_dir.name, None)
    assert not (run_dir / "note.json").exists()
    write_job(tmp_path, 1)
    assert (run_dir / "run.json").read_bytes() == record


def test_parameters_that_differ_have_the_order_and_the_groups_of_their_pipeline(tmp_path: Path, page: Page) -> None:
    def add(number: int, parameters: dict[str, Any], pipeline: str = "small") -> None:
        run_dir = tmp_path / f"run-{number}"
        fields = {"parameters": parameters, "pipeline_name": pipeline}
        write(run_dir / "run.json", run_record(tmp_path, run_dir.name, TIME.replace("01Z", f"{number}Z"), **fields))
        spec = json.loads((COMPILED / "only_a_pipeline.json").read_text())
        spec["root"]["inputDefinitions"] = {
            "parameters": {name: {"parameterType": "STRING", "isOptional": True} for name in parameters}
        }
        spec["pipelineInfo"]["description"] = "Train.\n\nData: source; seed\nMachine: accelerator_count"
        write(run_dir / "pipeline.json", spec)

    add(1, {"accelerator_count": 0, "source": "digits", "seed": 1, "other": "a", "same": 1})
    add(2, {"accelerator_count": 1, "source": "tfds:mnist", "seed": 2, "other": "b", "same": 1})
    answer = page()
    # Those that the pipeline's form folds come last.
    assert answer["parameters"] == ["source", "accelerator_count", "other", "seed"]
    assert [(each["title"], each["names"]) for each in answer["groups"]] == [
        ("Data", ["source", "seed"]),
        ("Machine", ["accelerator_count"]),
        ("Other", ["other"]),
    ]
    (tmp_path / "run-2" / "pipeline.json").unlink()
    assert page(filter='id="run-2"')["groups"] == []


@pytest.mark.parametrize("is_job", [True, False])
@pytest.mark.parametrize("text", ["", "{", "[]", '{"state": "NEW"}'])
def test_a_run_with_a_damaged_record_is_listed_as_such(tmp_path: Path, page: Page, text: str, is_job: bool) -> None:
    write_job(tmp_path, 1)
    if is_job:
        write(tmp_path / "api" / "pipelineJobs" / "broken.json", job_record("broken", TIME))
    write(tmp_path / "broken" / "run.json", text or "\x00")
    good, broken = page()["runs"]
    assert (good["id"], good["state"]) == ("run-00001", "SUCCEEDED")
    assert (broken["id"], broken["state"]) == ("broken", "DAMAGED")
    assert re.fullmatch(r"run\.json is damaged \(.+\); delete the run", broken["error"])


def test_a_run_whose_process_was_killed_is_failed_and_one_that_is_stopping_says_so(tmp_path: Path, page: Page) -> None:
    for number in (1, 2):
        write_job(tmp_path, number, state="RUNNING")
    write(
        tmp_path / "api" / "pipelineJobs" / "run-00002.json",
        job_record("run-00002", TIME, state="PIPELINE_STATE_CANCELLING"),
    )
    with run_folder.lock(tmp_path / "run-00001"), run_folder.lock(tmp_path / "run-00002"):
        assert [each["state"] for each in page()["runs"]] == ["CANCELLING", "RUNNING"]
        assert [each["error"] for each in page()["runs"]] == [None, None]
    # The supervisors ended the steps, as the user had asked.
    assert [each["state"] for each in page()["runs"]] == ["CANCELLED", "FAILED"]
    assert [each["error"] for each in page()["runs"]] == [None, "the process that ran it was killed"]


def test_pages_follow_each_other_while_runs_arrive_and_go(tmp_path: Path, page: Page) -> None:
    expected = [write_job(tmp_path, number) for number in range(10)][::-1]
    seen, token = list[str](), ""
    for number in range(4):
        answer = page(page_size="3", page_token=token)
        seen, token = seen + ids(answer), answer["next_page_token"]
        write_job(tmp_path, 100 + number)
        shutil.rmtree(tmp_path / seen[-1])
    assert not token
    assert [each for each in seen if each in expected] == seen == expected


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('name:"FLOW"', ["run-00001"]),
        (r'name:"a \"quoted\" name"', ["run-00002"]),
        ('(name:"flow" OR id:"flow" OR pipeline:"flow") AND state="SUCCEEDED"', ["run-00001"]),
        ('(name:"small" OR id:"small" OR pipeline:"small") AND state="FAILED"', ["run-00003"]),
        ('create_time<"2026-01-01T00:01:30Z"', ["run-00001"]),
        ("schedule:*", []),
    ],
)
def test_a_filter_finds_runs(tmp_path: Path, page: Page, text: str, found: list[str]) -> None:
    write_job(tmp_path, 1, displayName="flowers")
    write_job(tmp_path, 2, displayName='a "quoted" name')
    write_job(tmp_path, 3, state="FAILED")
    answer = page(filter=text)
    assert (ids(answer), answer["total_size"]) == (found, len(found))


def test_a_condition_on_a_name_that_no_run_has_names_the_nearest(tmp_path: Path, page: Page) -> None:
    metrics = [{"task": "t", "artifact": "m", "name": "val.loss", "value": 0.5}]
    fields = {"metrics": metrics, "parameters": {"epochs": 5, "nested": {"rate": 1}}}
    write(tmp_path / "a" / "run.json", run_record(tmp_path, "a", TIME, **fields))
    everywhere = "(parameters.{0}>3 OR metrics.{0}>3 OR labels.{0}>3)"
    all_fields = ["labels", "metrics", "parameters"]
    for text, expected in {
        everywhere.format("epochz"): [{"name": "epochz", "fields": all_fields, "nearest": "epochs"}],
        f"state=SUCCEEDED AND {everywhere.format('quite_other')}": [
            {"name": "quite_other", "fields": all_fields, "nearest": ""}
        ],
        "metrics.epochs>3": [{"name": "epochs", "fields": ["metrics"], "nearest": ""}],
        # The name exists, and no value fits.
        everywhere.format("epochs").replace("3", "30"): [],
        "metrics.val.loss>3": [],
        "parameters.nested.rate>3": [],
        "state=FAILED": [],
    }.items():
        answer = page(filter=text)
        assert (ids(answer), answer["unknown"]) == ([], expected), text
    # A name may have dots, and a row that passes needs no explanation.
    assert ids(page(filter="metrics.val.loss<=0.5 OR metrics.epochz>3")) == ["a"]
    assert page(filter="metrics.val.loss<=0.5 OR metrics.epochz>3")["unknown"] == []


def test_rows_are_ordered_by_a_metric_on_all_pages(tmp_path: Path, page: Page) -> None:
    def add(name: str, accuracy: Any, pipeline: str = "small", rate: Any = 1, state: str = "SUCCEEDED") -> None:
        metrics = [{"task": "t", "artifact": "m", "name": "accuracy", "value": accuracy}]
        parameters = {"rate": rate, "size": 3}
        fields = {"metrics": metrics, "parameters": parameters, "pipeline_name": pipeline, "state": state}
        write(tmp_path / name / "run.json", run_record(tmp_path, name, TIME, **fields))

    for number, accuracy in enumerate([0.5, 0.9, "NaN", 0.7, 0.9]):
        add(f"run-{number}", accuracy, rate=number % 2)
    add("other", 1, "other", rate="x")
    for order, expected in (
        ("metrics.accuracy desc", ["other", "run-4", "run-1", "run-3", "run-0", "run-2"]),
        ("metrics.accuracy", ["run-0", "run-3", "run-1", "run-4", "other", "run-2"]),
        ("parameters.rate", ["run-0", "run-2", "run-4", "run-1", "run-3", "other"]),
    ):
        found, token = list[str](), ""
        for _ in range(3):
            answer = page(order_by=order, page_size="2", page_token=token)
            found, token = found + ids(answer), answer["next_page_token"]
        assert (found, token) == (expected, ""), order
    assert answer["ranges"] == {"small": {"accuracy": (0.5, 0.9)}, "other": {"accuracy": (1, 1)}}
    assert answer["parameters"] == ["rate"]
    assert page(filter='pipeline="small" AND parameters.rate=1')["total_size"] == 2
    add("failed", 2, state="FAILED")
    assert page()["ranges"]["small"] == {"accuracy": (0.5, 0.9)}, "a failed run is never the best"


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ({"filter": "color=red"}, "unknown field 'color'"),
        ({"filter": 'name:"'}, "cannot read"),
        ({"page_size": "many"}, "page_size: expected a number"),
        ({"page_size": "9" * 5000}, "page_size: expected a number"),
        ({"page_size": "-1"}, "page_size: expected a number"),
        ({"order_by": "color"}, "order_by: unknown field 'color'"),
        ({"order_by": "metrics"}, "order_by: unknown field 'metrics'"),
        ({"page_token": "["}, "page_token"),
    ],
)
def test_a_wrong_query_is_refused(page: Page, query: dict[str, str], message: str) -> None:
    with pytest.raises(ApiError, match=message):
        page(**query)


def test_a_run_that_begins_while_the_rows_are_read_is_a_change(
    tmp_path: Path, runs: RunList, page: Page, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localvertex.console.events.list_changes._PAUSE", 0)
    write_job(tmp_path, 1)
    index = runs._store.index
    read = index.summaries

    def begin(of: Any) -> Any:
        found = list(read(of))
        write_job(tmp_path, 2)
        return found

    changes = ListChanges(runs)
    with monkeypatch.context() as patched:
        patched.setattr(index, "summaries", begin)
        ((_, first),) = changes()
    # The client reads after the event, and knows from the version that it has the next one already.
    answer = page()
    assert ids(answer) == ["run-00002", "run-00001"]
    assert list(changes()) == [("runs", {"version": answer["version"]})]
    assert answer["version"] != first["version"]
    assert list(changes()) == []


def test_every_change_of_the_list_is_an_event_and_nothing_else(
    tmp_path: Path, runs: RunList, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("localvertex.console.events.list_changes._PAUSE", 0)
    write_job(tmp_path, 1)
    write_job(tmp_path, 2)
    changes = ListChanges(runs)
    assert list(changes()) == [("runs", {"version": runs.rows()[0]})]

    def seen() -> bool:
        found = list(changes())
        assert found in ([], [("runs", {"version": runs.rows()[0]})])
        with files_opened() as opened:
            assert list(changes()) == []
        assert opened == []
        return bool(found)

    assert not seen()
    write_job(tmp_path, 3)
    assert seen()
    shutil.rmtree(tmp_path / "run-00003")
    assert seen()
    running = tmp_path / "run-00004"
    running.mkdir()
    entries = journal.Journal(running, 1)
    content = run_record(tmp_path, running.name, TIME, state="RUNNING")
    with run_folder.lock(running):
        write(running / "run.json", content | {"journal": entries.position.as_json()})
        assert seen()
        entries.append([{"time": TIME, "run": {"seconds": 5.0}}])
        assert seen()
        assert not seen()
    # The process of the run has ended without a last record.
    assert seen()
    write(tmp_path / "api" / "customJobs" / "1.json", {"name": f"{PARENT}/customJobs/1"})
    assert seen()
    assert list(ListChanges(runs)()) == [("runs", {"version": runs.rows()[0]})]
