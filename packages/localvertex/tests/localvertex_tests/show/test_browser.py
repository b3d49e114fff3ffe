"""The report in a real browser, opened from the disk: it has all of a run, needs no other file, and runs nothing."""

import re
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from localvertex_tests.console.comparing.runs import Runs, metric
from localvertex_tests.show.test_page import recurring, whole
from localvertex_tests.show.test_untrusted import HOSTILE, REORDERING, hostile
from localvertex_tests.support.axe import problems_of
from playwright.sync_api import Browser, expect

import localvertex
from localvertex._base.compiled.load import load
from localvertex.credentials.secrets import Secrets
from localvertex.show import report
from vertex_testing.browser import browser as browser, needs_chromium, opened_report

pytestmark = [pytest.mark.slow, needs_chromium]

REFUSED = r"Blocked script execution in 'blob:null/.*|.*violates the following Content Security Policy directive.*"
"""What the browser says of scripts and images in pages that steps wrote."""


@pytest.fixture(scope="module")
def runs(compile_pipeline: Callable[[Any, Path], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Run some pipelines, and return their work folder."""
    folder = tmp_path_factory.mktemp("reports")
    texts = {"texts": [*HOSTILE, REORDERING], "items": HOSTILE[:4]}
    given: list[tuple[Any, str, dict[str, Any]]] = [
        (whole, "whole", {}),
        (hostile, "hostile", texts),
        (recurring, "first", {"is_finished": False}),
        (recurring, "second", {"is_finished": True}),
    ]
    for pipeline, run_id, parameters in given:
        file = compile_pipeline(pipeline, folder / f"{run_id}.json")
        options = localvertex.Options(work_dir=folder / "runs", run_id=run_id, max_backoff_seconds=0.05)
        localvertex.run(file, parameters=parameters, options=options)
    return folder / "runs"


def test_a_moved_report_shows_the_error_the_steps_and_what_they_wrote(
    runs: Path, tmp_path: Path, browser: Browser
) -> None:
    file = tmp_path / "mailed report.html"
    shutil.copy(runs / "whole" / "run.html", file)
    with opened_report(browser, file, expected=REFUSED) as page:
        expect(page.get_by_role("heading", level=1)).to_contain_text("whole Failed")
        expect(page.get_by_role("alert")).to_contain_text("ValueError: seven is not allowed")
        expect(page.locator(".resume")).to_contain_text("run --resume whole")
        # What needs a server is not offered.
        for name in ("Stop", "Retry", "Delete", "Run again", "Compare"):
            expect(page.get_by_text(name, exact=True)).to_have_count(0)
        expect(page.get_by_role("button", name=re.compile("^check 1 of 3 failed"))).to_be_visible()
        expect(page.get_by_role("button", name=re.compile("^never Not triggered"))).to_be_visible()
        assert problems_of(page) == []
        page.get_by_role("tab", name="Steps").click()
        expect(page.get_by_role("link", name="Item 1: 7")).to_be_visible()
        page.get_by_role("alert").get_by_role("link", name="1/check").click()
        log = page.get_by_role("log")
        expect(log).to_contain_text("ValueError: seven is not allowed")
        expect(log).to_contain_text("These are the last lines")
        expect(log).not_to_contain_text("before the last lines")
        page.get_by_role("tab", name="Steps").click()
        page.get_by_role("row", name="check").first.get_by_role("link").click()
        page.get_by_role("tab", name="Inputs and outputs").click()
        expect(page.get_by_role("table").last).to_contain_text("cat")
        expect(page.get_by_role("img", name="ROC of 3 points, area 0.7500")).to_be_visible()
        frame = page.locator("iframe")
        assert frame.get_attribute("sandbox") == ""
        heading = frame.content_frame.get_by_role("heading")
        expect(heading).to_have_text("Checked 5")
        expect(heading).to_have_css("color", "rgb(255, 0, 0)")
        assert problems_of(page) == []


def test_no_hostile_text_is_markup_or_widens_the_page_of_a_telephone(runs: Path, browser: Browser) -> None:
    file = runs / "hostile" / "run.html"
    for path in ("", "emit", "fail"):
        fragment = f"#/runs/hostile/{quote(path, safe='')}?view=steps"
        with opened_report(browser, file, fragment, width=390, expected=REFUSED) as page:
            expect(page.get_by_role("heading", level=1)).to_contain_text("hostile")
            for each in page.locator("details").all():
                each.evaluate("(element) => { element.open = true; }")
            expect(page.locator("#page")).to_contain_text(HOSTILE[2])
            expect(page.locator("#page")).to_contain_text("safe\\u202etxt.exe\\u2066\\u001b[31m")
            assert page.evaluate("document.documentElement.scrollWidth") == 390
            assert page.locator("[onerror], [onfocus], [autofocus], img, body script:not([id]) ~ script").count() == 0
            links = [each.get_attribute("href") or "" for each in page.locator("a[href]").all()]
            assert [each for each in links if not re.match(r"#/runs/hostile|\./[\w%.-]+/|https://", each)] == []


@pytest.mark.soak
def test_a_run_with_nothing_new_leads_to_the_report_of_the_earlier_one(runs: Path, browser: Browser) -> None:
    with opened_report(browser, runs / "second" / "run.html") as page:
        expect(page.get_by_text("Nothing new: same as run first; its model is in")).to_be_visible()
        assert page.get_by_role("link", name="Show that run").get_attribute("href") == "./../first/run.html"
    # A damaged address leads to the run.
    with opened_report(browser, runs / "first" / "run.html", "#/runs/first/%E0%A4%A") as page:
        expect(page.get_by_role("region", name="Results")).to_contain_text("0.875")
        expect(page.get_by_role("region", name="Summary of the run")).to_contain_text("SHA-256")


@pytest.mark.soak
def test_the_training_of_a_job_is_in_the_report(runs: Path, browser: Browser) -> None:
    written = Runs(runs)
    job = written.train("trained", [2.0, 1.0, 0.5])
    content = written.add("trained", job=job, metrics=[metric("accuracy", 0.25)])
    model = {"task": "train", "artifact": "model", "uri": "x", "resource_name": "projects/p/models/digits@3"}
    pipeline = load(runs / "whole" / "pipeline.json").pipeline
    report.write(runs / "trained", content | {"models": [model]}, pipeline, Secrets().remove)
    with opened_report(browser, runs / "trained" / "run.html", "#/runs/trained/train?tab=curves") as page:
        expect(page.get_by_role("slider", name="Loss by time")).to_have_attribute("aria-valuetext", "0.5 at 4.0 s")
        page.get_by_role("tab", name="Replicas").click()
        expect(page.get_by_role("img", name=re.compile("^Timeline of workerpool0-0"))).to_be_visible()
        expect(page.get_by_role("button", name="Kill workerpool0-0")).to_have_count(0)
        assert problems_of(page) == []
        page.get_by_role("link", name="Close").click()
        model = page.get_by_role("region", name="Overview").get_by_role("link", name="digits version 3")
        assert model.get_attribute("href") == "./../models/digits/3/"
