"""Schedules in a real browser: created with a cron that explains itself, run, paused, resumed and deleted."""

import json
import re
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from localvertex_tests.support.axe import problems_of
from playwright.sync_api import Browser, Page, expect

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server

pytestmark = [needs_chromium, pytest.mark.slow]

DAY = datetime.now(UTC) + timedelta(days=3)
"""The schedule fires on this day of the week, not during the test."""

HOSTILE = '<img src=x onerror="document.title=1"> & ${1}'


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """Return a server for this module."""
    with Server(tmp_path_factory.mktemp("schedules") / "runs") as started:
        yield started


def upload(page: Page, content: dict[str, Any]) -> None:
    page.set_input_files(
        "#pipeline-file", {"name": "light.json", "mimeType": "text/plain", "buffer": json.dumps(content).encode()}
    )


def test_a_schedule_is_created_run_paused_resumed_and_deleted(
    browser: Browser, server: Server, light_pipeline: dict[str, Any]
) -> None:
    with opened(browser, server, "#/schedules") as page:
        page.get_by_role("link", name="Create schedule").first.click()
        upload(page, light_pipeline)
        page.get_by_label("Name", exact=True).fill(HOSTILE)
        cron = page.get_by_label("Cron")
        cron.fill("0 3 * *")
        expect(page.locator("#cron-error")).to_contain_text("expected five fields")
        expect(cron).to_have_attribute("aria-invalid", "true")
        page.get_by_role("button", name="Create schedule").click()
        expect(page.get_by_text("Correct the form first.").last).to_be_visible()
        cron.fill(f"0 3 * * {DAY:%w}")
        page.get_by_label("Time zone").select_option("Europe/Berlin")
        expect(page.locator(".cron li")).to_have_count(5)
        expect(page.locator(".cron li").first).to_have_text(re.compile(rf"^{DAY:%a} .* 03:00 CES?T$"))
        page.get_by_label("x", exact=True).fill("z")
        page.get_by_role("button", name="Create schedule").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"{HOSTILE} Active")
        expect(page.locator(".values")).to_contain_text('{"x":"z"}')
        (schedule,) = server.schedules()
        assert (schedule["displayName"], schedule["cron"]) == (HOSTILE, f"TZ=Europe/Berlin 0 3 * * {DAY:%w}")
        here = page.url
        expect(page.locator(".values")).to_contain_text("0 (without Run now)")

        page.get_by_role("button", name=re.compile("^Run now")).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Succeeded")
        page.goto(here)
        expect(page.get_by_role("table", name="Runs of this schedule").locator("tbody tr")).to_have_count(1)
        expect(page.get_by_role("table", name="Runs of this schedule")).to_contain_text("Succeeded")

        page.get_by_role("button", name=re.compile("^Pause")).click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Paused")
        expect(page.get_by_text("Next times, once it is resumed")).to_be_visible()
        page.get_by_role("button", name=re.compile("^Resume")).click()
        page.get_by_label(re.compile("^Catch up")).check()
        page.get_by_role("dialog").get_by_role("button", name="Resume").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("Active")
        assert server.schedules()[0]["catchUp"] is True

        page.get_by_role("link", name="Schedules").first.click()
        expect(page.get_by_role("columnheader", name="Runs started")).to_be_visible()
        expect(page.get_by_text("Runs started does not count runs of Run now.")).to_be_visible()
        page.goto(here)
        page.get_by_role("button", name=re.compile("^Delete")).click()
        page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
        assert len(server.schedules()) == 1
        page.get_by_role("button", name=re.compile("^Delete")).click()
        page.get_by_role("dialog").get_by_role("button", name="Delete").click()
        expect(page.get_by_text("No schedules yet")).to_be_visible()
        assert server.schedules() == []
        assert page.title() != "1"


@pytest.mark.parametrize("width", [1280, 390])
def test_the_views_are_accessible_and_fit(
    browser: Browser, server: Server, light_pipeline: dict[str, Any], width: int
) -> None:
    parent = "projects/local-project/locations/us-central1"
    request = {"parent": parent, "pipelineJob": {"pipelineSpec": light_pipeline}}
    body = {"displayName": HOSTILE, "cron": "TZ=Asia/Tokyo 0 3 1 * 1", "maxConcurrentRunCount": "1"}
    with server.without_schedules(), opened(browser, server, "#/schedules", width=width) as page:
        answer = server.call("POST", "schedules", body | {"createPipelineJobRequest": request}).json()
        # Without a reload.
        row = page.get_by_role("link", name=HOSTILE)
        expect(row).to_be_visible()
        assert problems_of(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        row.click()
        expect(page.get_by_role("heading", name="History")).to_be_visible()
        expect(page.locator(".cron")).to_contain_text("Asia/Tokyo")
        assert problems_of(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto(f"{server.url}/#/schedules/new")
        upload(page, light_pipeline)
        expect(page.locator(".cron li")).to_have_count(5)
        assert problems_of(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        page.goto(f"{server.url}/#/schedules/{answer['name'].rpartition('/')[2]}9")
        expect(page.get_by_role("alert")).to_contain_text("It does not exist")
