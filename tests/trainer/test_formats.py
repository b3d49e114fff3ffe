"""The files that exact_resume writes and others read are those that docs/events.md describes."""

import re
from pathlib import Path

import pytest

from exact_resume.checkpoints import checkpoints, manifest, result_file
from exact_resume.events import log as event_log
from localvertex.jobs.goodput.event_files import EventFiles, EventLog

EVERY_LINE = {"time", "event"}
ADDED = {"replica"}
"""By the reader, from the name of the file."""


@pytest.fixture(scope="module")
def page() -> str:
    """The page about the formats."""
    return (Path(__file__).parents[2] / "docs" / "events.md").read_text(encoding="utf-8")


def rows(page: str, heading: str) -> list[list[str]]:
    """Return the cells of a table by its first line."""
    _, _, table = page.partition(f"\n{heading}\n")
    assert table, heading
    lines = table.partition("\n\n")[0].splitlines()[1:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def names(cell: str) -> list[str]:
    return re.findall(r"`([a-z_0-9]+)`", cell)


def fields_of_events(page: str) -> dict[str, set[str]]:
    """Return event -> fields, besides those of every line."""
    found: dict[str, set[str]] = {}
    event = ""
    for first, fields, _ in rows(page, "| event | field | meaning |"):
        event = names(first)[0] if first else event
        found.setdefault(event, set()).update(names(fields))
    return found


def test_the_events_of_a_real_run_have_the_fields_of_the_page(page: str, trained_directory: Path) -> None:
    described = fields_of_events(page)
    assert described.keys() == {names(first)[0] for first, _ in rows(page, "| event | when |")}
    events = event_log.read(str(trained_directory))
    assert {event["event"] for event in events} >= {"start", "steps", "evaluate", "save", "exit"}
    optional = {"metric", "score"}
    for event in events:
        found = event.keys() - EVERY_LINE - ADDED
        assert found - described[event["event"]] == set(), event
        assert described[event["event"]] - found - optional == set(), event


def test_localvertex_reads_the_event_log_of_a_real_run(trained_directory: Path) -> None:
    file = trained_directory / "events" / f"{event_log.PRIMARY}.jsonl"
    read = EventFiles({event_log.PRIMARY: EventLog(path=str(file), offset=0)})
    assert read.poll()
    progress, events = read.progress(event_log.PRIMARY), event_log.read(str(trained_directory))
    steps = [event for event in events if event["event"] == "steps"]
    assert (progress.step, progress.num_steps) == (steps[-1]["last_step"], steps[-1]["num_steps"])
    assert [event["event"] for event in read.of(event_log.PRIMARY)] == [event["event"] for event in events]


def test_a_real_result_has_the_fields_of_the_page(page: str, trained_directory: Path) -> None:
    result = result_file.read_result(str(trained_directory))
    assert result
    _, _, section = page.partition("## result.json")
    described = {name for first, _ in rows(section, "| field | meaning |") for name in names(first)}
    assert result.keys() - {"seal"} == described - {"metric", "score", "journey"}


def test_a_real_manifest_has_the_fields_of_the_page(page: str, trained_directory: Path) -> None:
    (step, *_) = checkpoints.steps(str(trained_directory))
    (text,) = re.findall(r"^- `manifest\.json`: (.*?)\n\n", page, re.M | re.S)
    words = re.sub(r"[`\s]+", " ", text)
    described = {
        "step": "step,",
        "best": "best,",
        "run_id": "run_id,",
        "identity": "identity,",
        "is_validated": "whether a due validation is done",
        "validations": "the scores of all validations",
        "reason": "why the run has ended",
        "extra": "the state that only the trainer reads",
        "files": "size and SHA-256 of each file",
    }
    assert manifest.read(str(trained_directory), step).keys() == described.keys()
    assert [phrase for phrase in described.values() if phrase not in words] == []
