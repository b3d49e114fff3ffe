"""Models in a browser: versions side by side, aliases, a model that is tried, and a version that is deleted."""

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
from localvertex_tests.support import serving
from localvertex_tests.support.axe import problems_of
from localvertex_tests.support.run_records import run_record, write
from playwright.sync_api import Browser, Page, expect

from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions
from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.processes import has_ended
from vertex_testing.server import Server, wait_until

pytestmark = [pytest.mark.slow, needs_chromium]

HOSTILE = "<img src=x onerror=alert(1)>"

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNkYPhfDwAChwGA60e6kgAAAABJRU5ErkJggg=="
)
"""An image with one pixel."""


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
        baseline = {"task": "evaluate", "artifact": "metrics", "name": "baseline_accuracy", "value": 0.4375}
        content = run_record(
            work_dir, f"run-{number}", created, uuid=number, parameters={"epochs": epochs}, metrics=[baseline]
        )
        write(work_dir / f"run-{number}" / "run.json", content)
        versions = add(work_dir, "flowers", uploaded_by=f"{number}/upload", version_description=HOSTILE)
        versions.evaluate(number, {"display_name": HOSTILE, "metrics": {"accuracy": 0.5 + epochs / 100}})
    versions.change_shared({"display_name": HOSTILE, "description": HOSTILE, "labels": {"team": HOSTILE}})
    add(work_dir, "gated", "gate", str(work_dir.parent / "gate"))
    with Server(work_dir) as server:
        yield server


def file(content: bytes = PIXEL) -> Any:
    """Return what a user chooses."""
    return {"name": "pixel.png", "mimeType": "image/png", "buffer": content}


def versions_of(server: Server, model: str) -> ModelVersions:
    """Return the versions of a model."""
    return ModelVersions.of(server.work_dir, model)


@pytest.fixture(scope="module")
def predictions(browser: Browser, console: Server) -> Iterator[Page]:
    """A page of the console."""
    with opened(browser, console, "#/models") as page:
        page.wait_for_selector("table")
        yield page


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
        page.keyboard.press("ArrowRight")
        expect(page.get_by_role("tab", name="Try it")).to_have_attribute("aria-selected", "true")


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


def test_an_image_is_tried_and_other_instances_are_sent_as_json(browser: Browser, console: Server) -> None:
    with opened(browser, console, "#/models/flowers/1?tab=try") as page:
        page.get_by_label("Choose an image").set_input_files(file())
        answer = page.locator(".predictions pre")
        expect(answer).to_contain_text(base64.b64encode(PIXEL).decode())
        assert problems_of(page) == []
        image = page.get_by_role("img", name="The image pixel.png")
        assert str(image.get_attribute("src")).startswith("blob:")
        expect(image).to_have_js_property("naturalWidth", 1)
        page.get_by_label("JSON").check()
        page.get_by_label("Request, as").fill('{"instances": [')
        page.get_by_role("button", name="Predict").click()
        expect(page.get_by_role("alert")).to_contain_text("Not JSON")
        page.get_by_label("Request, as").fill(json.dumps({"instances": [HOSTILE]}))
        page.get_by_role("button", name="Predict").click()
        expect(answer).to_contain_text(HOSTILE)


@pytest.mark.parametrize(
    ("prediction", "rows"),
    [
        ({"probabilities": [0.25, 0.75], "labels": ["cat", HOSTILE]}, [f"{HOSTILE} 75.00%", "cat 25.00%"]),
        ({"confidences": [1.0000001], "displayNames": ["dog"], "ids": ["7"]}, ["dog 100.00%"]),
        ({"probabilities": [0.1] * 8}, [f"output {number} 10.00%" for number in range(5)]),
        ({"probabilities": [3.5, -1.0], "labels": ["cat", "dog"]}, []),
        ({"probabilities": ["0.5"], "labels": ["cat"]}, []),
        ([0.25, 0.75], []),
    ],
)
def test_probabilities_are_bars_and_nothing_is_guessed(predictions: Page, prediction: Any, rows: list[str]) -> None:
    # Only the prediction is not that of a model: the part of the page is the real one.
    answer = {"predictions": [prediction], "class_names": [], "endpoint": "", "seconds": 1}
    predictions.evaluate(
        """async (answer) => {
          const { html, render } = await import("/console/ui/html.js");
          const { Predictions } = await import("/console/models/predictions.js");
          render(html`<${Predictions} answer=${answer} />`, document.querySelector("main"));
        }""",
        answer,
    )
    expect(predictions.locator(".bars li")).to_have_text(rows, use_inner_text=True)
    expect(predictions.locator(".predictions pre")).to_have_count(0 if rows else 1)


def test_an_image_is_dropped(browser: Browser, console: Server) -> None:
    with opened(browser, console, "#/models/flowers/1?tab=try") as page:
        drop(page, PIXEL)
        expect(page.locator(".predictions pre")).to_contain_text(base64.b64encode(PIXEL).decode())
        drop(page, b"x" * 1_200_000)
        expect(page.get_by_role("alert")).to_contain_text("1.5 MiB")


def drop(page: Page, content: bytes) -> None:
    """Drop a file on the page."""
    script = """text => {
      const data = new DataTransfer();
      const bytes = Uint8Array.from(atob(text), each => each.charCodeAt(0));
      data.items.add(new File([bytes], "dropped.png", { type: "image/png" }));
      return data;
    }"""
    data = page.evaluate_handle(script, base64.b64encode(content).decode())
    page.locator(".drop").dispatch_event("drop", {"dataTransfer": data})


def test_a_start_shows_its_progress_and_is_cancelled(browser: Browser, console: Server) -> None:
    with opened(browser, console, "#/models/gated/1?tab=try", expected="409") as page:
        page.get_by_label("Choose an image").set_input_files(file())
        expect(page.locator(".trial")).to_contain_text("Starting the serving container")
        expect(page.locator(".trial")).to_contain_text("serving started")
        page.get_by_role("button", name="Cancel").click()
        expect(page.locator(".trial")).to_have_count(0)
        wait_until(lambda: console.request("GET", "/local/models/gated/1:trial").json()["state"] == "stopped")
        (console.work_dir.parent / "gate").touch()
        page.get_by_label("Choose an image").set_input_files(file())
        expect(page.locator(".predictions")).to_contain_text("Answered by its container")


def test_a_version_is_deleted_after_a_question_with_its_process(browser: Browser, console: Server) -> None:
    add(console.work_dir, "doomed")
    add(console.work_dir, "doomed")
    path = "/local/models/doomed/2"
    predicted = console.request("POST", f"{path}:predict", json={"instances": [1]})
    assert predicted.status_code == 200, predicted.text
    process = psutil.Process(int(predicted.json()["predictions"][0]["by"]["pid"]))
    assert not has_ended(process)
    with opened(browser, console, "#/models/doomed/2") as page:
        page.get_by_role("button", name="Delete version").click()
        page.get_by_role("button", name="Cancel").click()
        assert versions_of(console, "doomed").numbers == ["1", "2"]
        page.get_by_role("button", name="Delete version").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete version").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("version 1")
        assert versions_of(console, "doomed").numbers == ["1"]
        assert has_ended(process)
        page.get_by_role("button", name="Delete version").click()
        page.get_by_role("dialog").get_by_role("button", name="Delete model").click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Models")
    assert versions_of(console, "doomed").numbers == []


def test_what_cannot_run_or_be_deleted_says_why(browser: Browser, console: Server) -> None:
    registry.add(console.work_dir, {"display_name": "foreign", "container_spec": {"image_uri": "gcr.io/a/b"}})
    registry.add(console.work_dir, {"display_name": "foreign"})
    with opened(browser, console, "#/models/foreign/1?tab=try") as page:
        expect(page.locator("main")).to_contain_text("the serving container has no command")
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
