"""The page of a training job in a real browser: what is shown of its replicas, and what a button does to one."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.console.jobs.training import NUM_STEPS, PRIMARY, TASK, WORKER, Training, one_job
from localvertex_tests.support.axe import problems_of
from playwright.sync_api import Browser, Page, expect

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server

pytestmark = [pytest.mark.slow, needs_chromium]


@pytest.fixture
def server(start_server: Callable[..., Server]) -> Server:
    return start_server()


@pytest.fixture
def training(tmp_path: Path) -> Training:
    return Training(tmp_path)


def break_(page: Page, button: str, action: str) -> None:
    """Press a button of a replica and confirm it."""
    page.get_by_role("button", name=button).click()
    page.get_by_role("dialog").get_by_role("button", name=action).click()
    expect(page.get_by_role("dialog")).to_have_count(0)


def test_a_killed_replica_restarts_before_the_eyes_of_the_user(
    browser: Browser, server: Server, training: Training, compile_pipeline: Any, tmp_path: Path
) -> None:
    spec = json.loads(compile_pipeline(one_job, tmp_path / "one.json").read_text())
    watch = training.start(server, spec)
    watch.trains(1)
    with opened(browser, server, f"#/runs/one/{TASK}") as page:
        page.get_by_role("tab", name="Curves").click()
        expect(page.locator(".chart canvas")).to_have_count(4)
        page.get_by_role("tab", name="Replicas").click()
        expect(page.get_by_role("img", name=re.compile(f"Timeline of {WORKER}: .*productive"))).to_be_visible()
        replica = page.locator("li.replica", has_text=WORKER)
        page.get_by_role("button", name=f"Kill {WORKER}").click()
        expect(page.get_by_role("dialog")).to_contain_text("SIGKILL")
        page.keyboard.press("Escape")
        expect(page.get_by_role("dialog")).to_have_count(0)
        assert "fault" not in {each["kind"] for each in watch.read()["events"]}, "it was not confirmed"
        break_(page, f"Kill {WORKER}", "Kill it")
        # No reload: the event stream shows what follows.
        expect(replica).to_contain_text("2 starts")
        expect(replica).to_contain_text("exit code 137")
        lane = page.get_by_role("img", name=re.compile(f"Timeline of {WORKER}: .*fault: SIGKILL {WORKER}"))
        expect(lane).to_be_visible()
        expect(page.locator("rect.lost").first).to_be_attached()
        # A process that is frozen before it is connected is not missed by its peer, which still waits for it.
        watch.trains(2)
        # Confirmed by keyboard alone.
        page.get_by_role("button", name=f"Freeze {WORKER}").focus()
        page.keyboard.press("Enter")
        page.get_by_role("button", name="Freeze it").focus()
        page.keyboard.press("Enter")
        expect(replica).to_contain_text("Frozen")
        expect(page.get_by_role("button", name=f"Freeze {WORKER}")).to_be_disabled()
        expect(page.get_by_role("button", name=f"Kill {WORKER}")).to_be_enabled()
        training.notice_silence(watch)
        expect(replica).to_contain_text("3 starts")
        training.hurry()
        expect(page.get_by_role("button", name=f"Kill {PRIMARY}")).to_have_count(0)
        expect(replica).to_contain_text(f"step {NUM_STEPS} of {NUM_STEPS}")
        page.get_by_role("tab", name="Curves").click()
        expect(page.get_by_text(re.compile("Resumed from step [0-9]+ at "))).to_be_visible()


def test_a_job_of_the_api_is_accessible_and_fits_a_phone(browser: Browser, server: Server, training: Training) -> None:
    watch = training.start_alone(server)
    watch.trains(1)
    with opened(browser, server, f"#/jobs/{watch.number}", width=390) as page:
        expect(page.get_by_role("heading", level=1)).to_be_visible()
        expect(page.locator(".chart canvas")).to_have_count(4)
        break_(page, f"Preempt {PRIMARY}", "Preempt it")
        expect(page.locator("li.replica", has_text=PRIMARY)).to_contain_text("2 starts")
        expect(page.get_by_label("Events of the job")).to_contain_text(f"fault: preempt {PRIMARY} at ")
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert problems_of(page) == []
        page.get_by_role("link", name=WORKER).click()
        expect(page.get_by_role("combobox", name="Log")).to_have_value(f"{WORKER}.log")
        (log,) = server.work_dir.glob(f"**/{watch.number}/{WORKER}.log")
        with log.open("a") as file:
            file.write("a needle\n")
        page.get_by_role("searchbox", name="Search the log").fill("NEEDLE")
        page.keyboard.press("Enter")
        expect(page.get_by_role("search")).to_contain_text("1 of 1")
        expect(page.locator(".line")).to_contain_text("a needle")
        with page.expect_download() as download:
            page.get_by_role("link", name="Download").click()
        assert "a needle" in Path(download.value.path()).read_text()
        page.get_by_role("button", name="Cancel").click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
        expect(page.get_by_role("button", name="Delete")).to_be_visible()
        expect(page.get_by_role("button", name=f"Kill {PRIMARY}")).to_have_count(0)


def test_a_job_that_makes_no_progress_says_why(browser: Browser, server: Server) -> None:
    job = {
        "status": {
            "is_running": True,
            "start": 0,
            "replicas": [],
            "num_restarts": 0,
            "stalled": "no step: <b>frozen</b>",
        },
        "timeline": {},
        "goodput": {},
        "events": [],
    }
    with opened(browser, server, "#/no/view") as page:
        expect(page.locator(".empty")).to_be_visible()
        page.evaluate(
            """async (job) => {
              const { html, render } = await import("/console/ui/html.js");
              const { Replicas } = await import("/console/jobs/replicas.js");
              const props = { job, steps: new Map(), target: { path: "" }, logOf: () => "" };
              render(html`<${Replicas} ...${props} />`, document.querySelector("main"));
            }""",
            job,
        )
        expect(page.locator(".notice.warn")).to_contain_text("No progress")
        expect(page.locator(".notice.warn")).to_contain_text("no step: <b>frozen</b>")
