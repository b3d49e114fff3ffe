"""Models in a browser: versions side by side, aliases, and a version that is deleted."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support import serving
from localvertex_tests.support.axe import problems_of
from localvertex_tests.support.run_records import run_record, write
from playwright.sync_api import Browser, expect

from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions
from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server

pytestmark = [pytest.mark.slow, needs_chromium]

HOSTILE = "<img src=x onerror=alert(1)>"


def add(work_dir: Path, name: str, *words: str, **fields: Any) -> ModelVersions:
    """Add a version whose container is tests/support/serving.py."""
    command = ["python", "-P", serving.__file__]
    container = {"image_uri": "serving:1", "command": command, "args": [*words], "predict_route": "/predict"}
    container["health_route"] = "/health"
    registry.add(work_dir, {"display_name": name, "container_spec": container, **fields})
    return ModelVersions.of(work_dir, name)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with a model of two versions from two runs."""
    work_dir = tmp_path_factory.mktemp("models") / "runs"
    for number, epochs in (("1", 2), ("2", 20)):
        created = f"2026-01-0{number}T00:00:00.000Z"
        figures = {"baseline_accuracy": 0.4375, "macro_f1": 0.25}
        metrics = [{"task": "evaluate", "artifact": "m", "name": name, "value": each} for name, each in figures.items()]
        content = run_record(
            work_dir, f"run-{number}", created, uuid=number, parameters={"epochs": epochs}, metrics=metrics
        )
        write(work_dir / f"run-{number}" / "run.json", content)
        versions = add(work_dir, "flowers", uploaded_by=f"{number}/upload", version_description=HOSTILE)
        averages = dict.fromkeys(("accuracy", "precision", "recall", "f1Score"), 0.5 + epochs / 100)
        content = {"confidenceMetrics": [{"confidenceThreshold": 0.0, "maxPredictions": 1, **averages}]}
        versions.evaluate(number, {"display_name": HOSTILE, "metrics": content})
    versions.change_shared({"display_name": HOSTILE, "description": HOSTILE, "labels": {"team": HOSTILE}})
    with Server(work_dir) as server:
        yield server


def versions_of(server: Server, model: str) -> ModelVersions:
    """Return the versions of a model."""
    return ModelVersions.of(server.work_dir, model)


@pytest.mark.parametrize("width", [1280, 390])
def test_the_baseline_is_beside_the_accuracy_on_any_screen(browser: Browser, console: Server, width: int) -> None:
    with opened(browser, console, "#/models", width=width) as page:
        for name in ("accuracy", "baseline_accuracy"):
            expect(page.get_by_role("columnheader", name=name, exact=True)).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") == width


@pytest.mark.parametrize("width", [1280, 390])
def test_versions_are_side_by_side_with_their_metrics_and_what_differs(
    browser: Browser, console: Server, width: int
) -> None:
    with opened(browser, console, "#/models", width=width) as page:
        page.get_by_role("link", name=HOSTILE).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"{HOSTILE} version 1")
        expect(page.locator(".measures")).to_contain_text("0.52")
        # An evaluation in Google's schema has no field for it: it is the run's.
        expect(page.locator(".measures")).to_contain_text("baseline_accuracy0.4375")
        # The averages over all examples are the accuracy; that over the classes says more.
        expect(page.locator(".measures")).to_contain_text("macro_f10.25")
        expect(page.locator(".measures").get_by_text("0.52")).to_have_count(1)
        page.get_by_role("tab", name="Versions").click()
        for number in "12":
            page.get_by_label(f"Select version {number}").check()
        metrics = page.get_by_role("table", name="Metrics of both versions")
        expect(metrics.get_by_role("row", name="accuracy 0.52")).to_contain_text("+0.18")
        expect(page.get_by_role("row", name="parameter epochs")).to_contain_text("20")
        expect(page.get_by_text("label team")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        assert problems_of(page) == []
        page.get_by_role("tab", name="Versions").focus()
        page.keyboard.press("ArrowLeft")
        expect(page.get_by_role("tab", name="Overview")).to_have_attribute("aria-selected", "true")


def test_an_alias_moves_and_is_removed(browser: Browser, console: Server) -> None:
    add(console.work_dir, "aliased")
    add(console.work_dir, "aliased")
    with opened(browser, console, "#/models/aliased/2") as page:
        page.get_by_role("button", name="Edit aliases").click()
        page.get_by_role("button", name="Make champion").click()
        expect(page.get_by_role("button", name="Remove champion")).to_be_visible()
        page.get_by_role("button", name="Make default (now version 1)").click()
        assert problems_of(page) == []
        page.get_by_label("Another alias").fill("candidate")
        page.get_by_role("button", name="Set", exact=True).click()
        expect(page.get_by_role("button", name="Remove candidate")).to_be_visible()
        assert versions_of(console, "aliased").aliases == {"champion": "2", "default": "2", "candidate": "2"}
        page.get_by_role("button", name="Remove candidate").click()
        expect(page.get_by_role("button", name="Remove candidate")).to_have_count(0)
        page.get_by_role("button", name="Close").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("champion")
    assert versions_of(console, "aliased").aliases == {"champion": "2", "default": "2"}


def test_a_version_is_deleted_after_a_question(browser: Browser, console: Server) -> None:
    add(console.work_dir, "doomed")
    add(console.work_dir, "doomed")
    with opened(browser, console, "#/models/doomed/2") as page:
        page.get_by_role("button", name="Delete version").click()
        page.get_by_role("button", name="Cancel").click()
        assert versions_of(console, "doomed").numbers == ["1", "2"]
        page.get_by_role("button", name="Delete version").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete version").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("version 1")
        assert versions_of(console, "doomed").numbers == ["1"]
        page.get_by_role("button", name="Delete version").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete model").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Models")
    assert versions_of(console, "doomed").numbers == []


def test_the_default_version_cannot_be_deleted_alone(browser: Browser, console: Server) -> None:
    registry.add(console.work_dir, {"display_name": "foreign", "container_spec": {"image_uri": "gcr.io/a/b"}})
    registry.add(console.work_dir, {"display_name": "foreign"})
    with opened(browser, console, "#/models/foreign/1") as page:
        page.get_by_role("button", name="Delete version").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete version").click()
        expect(page.get_by_role("alert")).to_contain_text("version 1 is the default")
    assert versions_of(console, "foreign").numbers == ["1", "2"]


def test_three_hundred_versions_and_damaged_ones_are_shown(browser: Browser, console: Server) -> None:
    for number in range(1, 301):
        text: Any = {"display_name": "many"} if number != 299 else "["
        write(console.work_dir / "models/many" / str(number) / "model.json", text)
    with opened(browser, console, "#/models/many/1?tab=versions") as page:
        rows = page.get_by_role("table", name="Versions").locator("tbody tr")
        expect(rows).to_have_count(25)
        expect(rows.nth(1)).to_contain_text("this version is damaged")
        page.get_by_role("button", name="Show all 300 versions").click()
        expect(rows).to_have_count(300)
