"""Sentences are for users: with a word added to each of them, all programs behave as before."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from playwright.sync_api import Browser, expect

from localvertex._base.compiled.load import load
from localvertex.api.pipeline_jobs import view
from localvertex.jobs.faults.faults import parse
from localvertex.show import report
from localvertex.show.terminal import resume_command
from localvertex.show.view.live import LiveJob
from localvertex.store import record, run_folder
from localvertex.store.steps import failure
from vertex_testing.browser import browser as browser, needs_chromium, opened_report
from vertex_testing.runs import Execute

ADDED = " indeed"
SENTENCES = {"text", "error", "note", "stalled", "sentence", "reason"}
PRIMARY, WORKER = "workerpool0-0", "workerpool1-0"
# The first process waits until it is killed, the second one refuses its input.
PROGRAM = """
import pathlib, sys, time
path = pathlib.Path(sys.argv[1])
if path.exists(): sys.exit(2)
path.touch()
time.sleep(600)
"""


@dsl.pipeline(name="sentences")
def sentences(pools: list) -> None:
    CustomTrainingJobOp(display_name="train", worker_pool_specs=pools)


def reworded(value: Any, name: str = "") -> Any:
    """Return a record with a word added to every sentence."""
    if isinstance(value, dict):
        return {key: reworded(each, key) for key, each in value.items()}
    if isinstance(value, list):
        return [reworded(each) for each in value]
    return f"{value}{ADDED}" if name in SENTENCES and isinstance(value, str) and value else value


def plain(value: Any) -> Any:
    return json.loads(json.dumps(value).replace(ADDED, ""))


@pytest.fixture
def found(execute: Execute, tmp_path: Path) -> dict[str, Any]:
    """Return the record of a job with a fault, a restart, and an exit code that ends it."""
    container = {"image_uri": "x", "command": ["python", "-c", PROGRAM]}
    pools = [
        {
            "machine_spec": {"machine_type": "n1-standard-4"},
            "replica_count": 1,
            "container_spec": container | {"args": [str(tmp_path / name)]},
        }
        for name in ("primary", "worker")
    ]
    faults = (parse(f"SIGSTOP {WORKER} at 4s"), parse(f"SIGKILL {PRIMARY} at 5s"))
    return execute(sentences, {"pools": pools}, faults=faults, run_id="one")


def test_programs_read_fields(found: dict[str, Any], work_dir: Path) -> None:
    (task,) = found["tasks"]
    assert (found["state"], task["custom_job"]["failed_replica"]) == ("FAILED", PRIMARY)
    events = [(each["kind"], each["replica"], each["action"], each["phase"]) for each in task["custom_job"]["events"]]
    expected = [
        ("fault", WORKER, "SIGSTOP", ""),
        ("fault", PRIMARY, "SIGKILL", ""),
        ("exit", PRIMARY, "", ""),
        ("decision", PRIMARY, "restarts the replica", ""),
        ("exit", PRIMARY, "", ""),
        ("decision", PRIMARY, "ends the job", "permanent"),
        ("exit", WORKER, "", ""),
        ("state", "", "", "JOB_STATE_FAILED"),
    ]
    assert events == expected
    other, run_dir = reworded(found), work_dir / "one"
    assert other != found
    (other_task,) = other["tasks"]
    running = {"replicas": [each | {"is_running": True} for each in task["custom_job"]["replicas"]]}
    jobs = [LiveJob().poll(each["custom_job"], is_running=False) for each in (task, other_task)]
    assert plain(jobs[1]) == plain(jobs[0])
    frozen = LiveJob().poll(other_task["custom_job"] | running, is_running=True)[0][1]["status"]["replicas"][1]
    assert (frozen["name"], frozen["condition"]) == (WORKER, "frozen")
    reads: list[Callable[[dict[str, Any]], Any]] = [
        lambda content: failure.log_of(content, run_dir)[0],
        lambda content: [failure.cannot_run_here(each) for each in content["tasks"]],
        lambda content: resume_command.sentence(content),
        lambda content: view.state_and_error({}, content, run_dir)[0],
        lambda content: record.of_tasks(content["tasks"])["metrics"],
    ]
    for read in reads:
        assert read(other) == read(found)
    assert failure.log_of(other, run_dir)[0] == run_dir / task["path"] / f"{PRIMARY}.log"


@pytest.mark.slow
@needs_chromium
def test_the_page_reads_fields(found: dict[str, Any], work_dir: Path, browser: Browser) -> None:
    run_dir, shown = work_dir / "one", list[tuple[str, int, int]]()
    pipeline = load(run_folder.pipeline_copy(run_dir)).pipeline
    for content in (found, reworded(found)):
        page = report.write(run_dir, content, pipeline, lambda value: value)
        with opened_report(browser, page, f"#/runs/one/{content['tasks'][0]['path']}") as tab:
            tab.get_by_role("tab", name="Replicas").click()
            expect(tab.get_by_label("Events of the job")).to_contain_text("Failed: ")
            text = re.sub(ADDED, "", tab.locator(".job").inner_text())
            shown.append((text, tab.locator("g.fault").count(), tab.locator("li.fault").count()))
    assert shown[0] == shown[1]
    assert shown[0][1:] == (2, 2)
