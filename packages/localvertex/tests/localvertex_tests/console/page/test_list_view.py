"""The list of runs in a real browser: first view, filter, pages, live rows, choosing runs, and a server that ends."""

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from localvertex_tests.support.axe import problems_of
from localvertex_tests.support.run_records import job_record, run_record, write, write_job
from playwright.sync_api import Browser, Page, expect

from localvertex.store import run_folder
from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import PARENT, Server

pytestmark = [needs_chromium, pytest.mark.slow]

NUM_RUNS = 500
JOB = {
    "name": f"{PARENT}/customJobs/77",
    "displayName": "a custom job",
    "state": "JOB_STATE_FAILED",
    "createTime": "2026-01-01T00:00:00.000Z",
    "startTime": "2026-01-01T00:00:00.000Z",
    "endTime": "2026-01-01T00:02:05.000Z",
    "updateTime": "2026-01-01T00:02:05.000Z",
    "jobSpec": {},
    "error": {"code": 3, "message": "replica 0 exited with 1"},
}


TYPE_AND_CHOOSE = """() => {
  const set = (selector, value, event) => {
    const field = document.querySelector(selector);
    field.value = value;
    field.dispatchEvent(new Event(event, { bubbles: true }));
  };
  set("input[type=search]", "model 1", "input");
  return new Promise((done) => setTimeout(done, 0)).then(() => set("select[aria-label=State]", "SUCCEEDED", "change"));
}"""
"""Types a text and chooses a state at once, faster than a user."""

NAMES = "performance.getEntriesByType('resource').map((each) => each.name)"


def written(work_dir: Path) -> Path:
    """Write 500 runs of a server and of terminals, of which each tenth failed, and a custom job."""
    for number in range(NUM_RUNS):
        job_id = write_job(
            work_dir, number, state="FAILED" if number % 10 == 3 else "SUCCEEDED", displayName=f"model {number}"
        )
        if number % 7 == 0:
            (work_dir / "api" / "pipelineJobs" / f"{job_id}.json").unlink()
    write(work_dir / "api" / "customJobs" / "77.json", JOB)
    return work_dir


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(written(tmp_path_factory.mktemp("list") / "runs")) as found:
        yield found


def rows(page: Page) -> list[str]:
    return page.locator("tbody tr a.title").all_inner_texts()


def test_the_first_view_has_the_newest_of_500_runs(browser: Browser, server: Server) -> None:
    with opened(browser, server) as page:
        page.reload()
        expect(page.get_by_text("1 to 50 of 500")).to_be_visible()
        # The time is that of a machine that may be busy, so it is only printed.
        milliseconds = page.evaluate("""() => performance.getEntriesByType("resource")
            .filter((each) => each.name.includes("/local/runs")).at(0).responseEnd""")
        print(f"first view of 500 runs: {milliseconds:.0f} ms after the navigation began")
        assert rows(page)[:2] == ["model 499", "model 498"]
        assert len(rows(page)) == 50
        loaded = page.evaluate("performance.getEntriesByType('resource').map((each) => new URL(each.name).origin)")
        assert set(loaded) == {server.url}
        print(f"{len(loaded)} requests")
        asked = [each.removeprefix(server.url).partition("?")[0] for each in page.evaluate(NAMES)]
        assert [asked.count(each) for each in ("/local/server", "/local/runs")] == [1, 1]


def test_pages_and_filter_and_their_addresses(browser: Browser, server: Server) -> None:
    with opened(browser, server) as page:
        page.get_by_role("button", name="Next").focus()
        page.keyboard.press("Enter")
        expect(page.get_by_text("51 to 100 of 500")).to_be_visible()
        expect(page.get_by_role("button", name="Next")).to_be_focused()
        assert rows(page)[0] == "model 449"
        page.get_by_role("combobox", name="State").select_option("FAILED")
        expect(page.locator("tbody .state")).to_have_text(["Failed"] * 50)
        expect(page.locator("tbody tr").first).to_contain_text("it failed")
        page.get_by_role("searchbox").fill('model 4" OR')
        expect(page.get_by_text("Nothing matches the filter")).to_be_visible()
        page.get_by_role("searchbox").fill("model 43")
        expect(page.locator("tbody tr")).to_have_count(2)
        assert rows(page) == ["model 433", "model 43"]
        # The address has the filter, so that it can be kept and sent.
        page.reload()
        expect(page.locator("tbody tr")).to_have_count(2)
        expect(page.get_by_role("searchbox")).to_have_value("model 43")
        # A state that is chosen before the text takes effect is kept.
        page.evaluate(TYPE_AND_CHOOSE)
        expect(page).to_have_url(re.compile(r"#/runs\?text=model\+1&state=SUCCEEDED$"))
        expect(page.get_by_role("combobox", name="State")).to_have_value("SUCCEEDED")
        expect(page.get_by_role("searchbox")).to_have_value("model 1")
        page.get_by_role("combobox", name="State").select_option("FAILED")
        page.get_by_role("searchbox").fill("")
        expect(page.get_by_text("of 50", exact=False)).to_have_count(0)
        expect(page.locator("tbody tr")).to_have_count(50)


METRICS = {"accuracy": [0.5, 0.9, 0.7, 0.6, 0.55, 0.8, 0.65, 0.75], "loss": [8, 1, 3, 6, 7, 2, 5, 4]}


@pytest.fixture(scope="module")
def eight(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server with eight runs, of which run-00001 is the best."""
    work_dir = tmp_path_factory.mktemp("eight") / "runs"
    for number in range(8):
        name = f"run-{number:05d}"
        metrics = [{"task": "t", "artifact": "m", "name": key, "value": METRICS[key][number]} for key in METRICS]
        fields = {"parameters": {"epochs": number % 3, "size": 5}, "metrics": metrics}
        write(work_dir / name / "run.json", run_record(work_dir, name, f"2026-01-01T00:0{number}:00.000Z", **fields))
    with Server(work_dir) as found:
        yield found


@pytest.mark.parametrize("width", [1280, pytest.param(390, marks=pytest.mark.soak)])
def test_which_is_best_of_eight_runs_takes_one_click(browser: Browser, eight: Server, width: int) -> None:
    with opened(browser, eight, width=width) as page:
        best = page.get_by_role("row").filter(has=page.get_by_role("link", name="run-00001"))
        expect(best.get_by_text("best").first).to_be_visible()
        page.get_by_role("button", name="accuracy").click()
        expect(page.get_by_role("columnheader", name="accuracy")).to_have_attribute("aria-sort", "descending")
        expect(page.locator("tbody tr").first).to_contain_text("run-00001")
        figure = page.locator("tbody tr").first.get_by_role("cell", name="0.9")
        expect(figure).to_be_in_viewport(ratio=1)
        assert figure.evaluate(
            "(cell) => cell.scrollWidth <= cell.clientWidth && cell.closest('.table').scrollLeft === 0"
        )
        assert problems_of(page) == []
        # The order is remembered, and so is the place after a look at a run.
        page.reload()
        expect(page.locator("tbody tr").first).to_contain_text("run-00001")
        page.set_viewport_size({"width": width, "height": 300})
        page.evaluate("scrollTo(0, 150)")
        page.locator("tbody tr").nth(3).get_by_role("link").evaluate("(link) => link.click()")
        expect(page.get_by_role("heading", level=1)).to_contain_text("run-0000")
        page.go_back()
        expect(page.locator("tbody tr").first).to_contain_text("run-00001")
        assert page.evaluate("scrollY") == 150


def test_a_filter_that_cannot_be_read_says_so(browser: Browser, eight: Server) -> None:
    with opened(browser, eight) as page:
        expect(page.locator("tbody tr")).to_have_count(8)
        for text in ("epochs>", "run =2", "accuracy>high", "<="):
            page.get_by_role("searchbox").fill(text)
            expect(page.get_by_role("alert")).to_contain_text(text.split()[-1])
            expect(page.get_by_text("Nothing matches the filter")).to_have_count(0)
        assert problems_of(page) == []
        page.get_by_role("searchbox").fill('"run-0" epochs>=2')
        expect(page.locator("tbody tr")).to_have_count(2)
        expect(page.get_by_role("alert")).to_have_count(0)
        page.get_by_role("searchbox").fill('"epochs>"')
        expect(page.get_by_text("Nothing matches the filter")).to_be_visible()


def test_a_condition_on_a_name_that_no_run_has_offers_the_nearest(browser: Browser, eight: Server) -> None:
    with opened(browser, eight) as page:
        page.get_by_role("searchbox").fill("epochz>=2")
        expect(page.get_by_text("No run has a label, metric or parameter named epochz")).to_be_visible()
        assert problems_of(page) == []
        page.get_by_role("button", name="Use epochs instead").click()
        expect(page.locator("tbody tr")).to_have_count(2)
        expect(page.get_by_role("searchbox")).to_have_value("epochs>=2")
        page.get_by_role("searchbox").fill("epochs>=20")
        expect(page.get_by_text("Nothing matches the filter")).to_be_visible()


def test_a_run_is_given_a_name_and_a_note(browser: Browser, eight: Server) -> None:
    with opened(browser, eight, "#/runs/run-00003") as page:
        page.get_by_role("button", name="Name and note").click()
        page.get_by_role("textbox", name="Name").fill("the <b>best</b>")
        page.get_by_role("textbox", name="Note").fill("trained on\nclean labels")
        assert problems_of(page) == []
        page.get_by_role("button", name="Save").click()
        expect(page.get_by_role("heading", level=1)).to_contain_text("the <b>best</b>")
        expect(page.get_by_text("clean labels")).to_be_visible()
        page.get_by_role("link", name="Runs", exact=True).first.click()
        page.get_by_role("searchbox").fill("clean")
        expect(page.locator("tbody tr")).to_have_count(1)
        expect(page.locator("tbody tr")).to_contain_text("the <b>best</b>")
        expect(page.locator("tbody tr")).to_contain_text("trained on clean labels")
    (eight.work_dir / "run-00003" / "note.json").unlink()


@pytest.mark.soak
def test_runs_are_filtered_by_parameters_and_metrics_and_deleted_together(browser: Browser, eight: Server) -> None:
    with opened(browser, eight) as page:
        page.get_by_role("searchbox").fill("run epochs=2 accuracy>0.6")
        expect(page.locator("tbody tr")).to_have_count(2)
        assert sorted(rows(page)) == ["run-00002", "run-00005"]
        # It is running, which is seen only when it is deleted.
        with run_folder.lock(eight.work_dir / "run-00002"):
            page.get_by_label("Select all rows").check()
            page.get_by_role("button", name="Delete (2)").click()
            page.get_by_role("dialog").get_by_role("button", name="Cancel").click()
            assert (eight.work_dir / "run-00005").exists()
            page.get_by_role("button", name="Delete (2)").click()
            page.get_by_role("dialog").get_by_role("button", name="Delete").click()
            expect(page.get_by_role("alert")).to_contain_text("run-00002")
            expect(page.get_by_role("heading", name="Delete 1 run?")).to_be_visible()
        assert (eight.work_dir / "run-00002").exists()
        assert not (eight.work_dir / "run-00005").exists()


def test_rows_change_without_a_reload(browser: Browser, server: Server) -> None:
    run_dir = server.work_dir / "zz-live"
    created = "2026-12-01T00:00:00.000Z"
    with opened(browser, server) as page:
        expect(page.locator("tbody tr")).to_have_count(50)
        page.evaluate("window.isSame = true")
        run_dir.mkdir()
        with run_folder.lock(run_dir):
            write(run_dir / "run.json", run_record(server.work_dir, run_dir.name, created, state="RUNNING"))
            first = page.locator("tbody tr").first
            expect(first).to_contain_text("Running")
            expect(first).to_contain_text("zz-live")
            expect(first).to_contain_text("Terminal")
        expect(first).to_contain_text("Failed")
        expect(first).to_contain_text("the process that ran it was killed")
        (run_dir / "run.json").unlink()
        expect(first).not_to_contain_text("zz-live")
        assert page.evaluate("window.isSame")


WATCH = """() => {
  window.seen = { times: 0, nodes: 0, rows: new Set() };
  const format = Date.prototype.getTime;
  Date.prototype.getTime = function () { seen.times += 1; return format.call(this); };
  new MutationObserver((all) => all.forEach(({ target, addedNodes, removedNodes }) => {
    seen.nodes += addedNodes.length + removedNodes.length;
    const element = target instanceof Element ? target : target.parentElement;
    seen.rows.add(element?.closest("tr")?.querySelector("a").textContent);
  })).observe(document.querySelector("tbody"), { subtree: true, childList: true, characterData: true });
  performance.clearResourceTimings();
  document.querySelector("tbody tr:nth-child(9) a").focus({ preventScroll: true });
  scrollTo(0, 150);
}"""
"""Counts what is drawn in the rows: the page asks for the time of each date that it formats, two per row."""

SEEN = """() => [seen.times, [...seen.rows], document.activeElement.textContent, scrollY,
  performance.getEntriesByType("resource").filter((each) => each.name.includes("/local/runs")).map(
    (each) => each.encodedBodySize)]"""


def test_only_the_row_of_a_changed_run_is_drawn_again(browser: Browser, server: Server) -> None:
    path = server.work_dir / "run-00498" / "run.json"
    before = path.read_text()
    with opened(browser, server) as page:
        page.reload()
        expect(page.locator("tbody tr")).to_have_count(50)
        page.evaluate(WATCH)
        created = "2026-01-05T08:18:00.000Z"
        write(path, run_record(server.work_dir, "run-00498", created, state="FAILED"), age_seconds=30)
        expect(page.locator("tbody tr").nth(1)).to_contain_text("Failed")
        times, drawn, focused, scrolled, sizes = page.evaluate(SEEN)
        assert (times, drawn, focused, scrolled) == (2, ["model 498"], "model 491", 150)
        print(f"{page.evaluate('seen.nodes')} nodes, {sizes} bytes")
        assert page.evaluate("seen.nodes") < 10
        assert len(sizes) == 1
        assert sizes[0] < 3000
        # Choosing a run draws its row alone, and so does the end of the choice.
        page.get_by_role("checkbox", name="Select model 495").check()
        page.get_by_role("button", name="Clear selection").click()
        assert page.evaluate("seen.times") == 6
        write(path, before, age_seconds=20)
        expect(page.locator("tbody tr").nth(1)).to_contain_text("Succeeded")


def test_two_runs_are_chosen_by_keyboard_and_compared(browser: Browser, server: Server) -> None:
    with opened(browser, server) as page:
        compare = page.get_by_role("button", name="Compare")
        expect(compare).to_be_disabled()
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "Skip to content"
        page.keyboard.press("Enter")
        assert page.evaluate("document.activeElement.id") == "main"
        page.get_by_role("checkbox", name="Select model 499").focus()
        page.keyboard.press("Space")
        page.keyboard.press("Tab")
        assert page.evaluate("document.activeElement.textContent") == "model 499"
        page.keyboard.press("Tab")
        page.keyboard.press("Space")
        expect(compare).to_have_text("Compare (2)")
        expect(compare).to_be_enabled()
        page.get_by_role("button", name="Clear selection").click()
        expect(compare).to_be_disabled()
        for name in ("model 498", "model 496"):
            page.get_by_role("checkbox", name=f"Select {name}").check()
        compare.click()
        expect(page.get_by_role("heading", name="Compare runs")).to_be_visible()
        assert page.url.endswith("#/compare?runs=run-00498%2Crun-00496")


def test_custom_jobs_of_the_api_are_listed_and_tabs_follow_the_arrow_keys(browser: Browser, server: Server) -> None:
    with opened(browser, server) as page:
        page.get_by_role("tab", name="Pipeline runs").focus()
        page.keyboard.press("End")
        expect(page.get_by_role("tab", name="Custom jobs")).to_be_focused()
        expect(page.locator("tbody tr")).to_have_count(1)
        for text in ("a custom job", "Failed", "2 min 5 s", "replica 0 exited with 1"):
            expect(page.locator("tbody tr")).to_contain_text(text)
        page.get_by_role("combobox", name="State").select_option("JOB_STATE_SUCCEEDED")
        expect(page.get_by_text("Nothing matches the filter")).to_be_visible()
        page.get_by_role("button", name="Clear filter").click()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.keyboard.press("Shift+Tab")
        page.go_back()


@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("fragment", ["#/runs", "#/runs?list=jobs", "#/runs?text=no+such+run", "#/no/such/view"])
def test_nothing_hinders_anybody(browser: Browser, server: Server, width: int, fragment: str) -> None:
    with opened(browser, server, fragment, width=width) as page:
        expect(page.locator("main tbody tr, main .empty").first).to_be_visible()
        page.locator("main input[type=checkbox]").first.check() if fragment == "#/runs" else None
        assert problems_of(page) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_the_menu_of_a_narrow_screen_opens_and_closes(browser: Browser, server: Server) -> None:
    with opened(browser, server, width=390) as page:
        menu, models = page.get_by_role("button", name="Menu"), page.get_by_role("link", name="Runs", exact=True)
        expect(menu).to_have_attribute("aria-expanded", "false")
        expect(models).to_be_hidden()
        menu.click()
        expect(models).to_be_visible()
        expect(menu).to_have_attribute("aria-expanded", "true")
        assert problems_of(page) == []


def test_a_lost_connection_is_shown_until_the_server_is_back(browser: Browser, tmp_path: Path) -> None:
    work_dir = tmp_path / "runs"
    write_job(work_dir, 1)
    with Server(work_dir) as server, opened(browser, server, expected="net::ERR_") as page:
        expect(page.locator("tbody tr")).to_have_count(1)
        lost = page.get_by_text("Connection lost: this page shows old data")
        expect(lost).to_have_count(0)
        server.end(signal.SIGKILL)
        expect(lost).to_be_visible()
        write(work_dir / "new" / "run.json", run_record(work_dir, "new", "2026-12-01T00:00:00.000Z"))
        write(work_dir / "api" / "pipelineJobs" / "new.json", job_record("new", "2026-12-01T00:00:00.000Z"))
        # The later of two ports counts.
        with Server(work_dir, "--port", server.url.rpartition(":")[2]):
            expect(lost).to_have_count(0)
            expect(page.locator("tbody tr")).to_have_count(2)


VIEWS = ["#/runs", "#/runs?list=experiments", "#/runs?list=jobs", "#/compare?runs=run-00001,run-00003", "#/models"]


@pytest.mark.soak
@pytest.mark.parametrize("width", [1280, 390])
@pytest.mark.parametrize("fragment", [*VIEWS, "#/schedules", "#/create"])
def test_no_list_hinders_anybody_in_forced_colours_and_with_large_text(
    browser: Browser, eight: Server, width: int, fragment: str
) -> None:
    with opened(browser, eight, fragment, width=width) as page:
        expect(page.get_by_role("status")).to_have_count(0)
        assert problems_of(page) == []
        page.emulate_media(color_scheme="light", forced_colors="active")
        for tab in page.get_by_role("tab", selected=False).all():
            assert tab.evaluate("(tab) => getComputedStyle(tab).borderBottomColor") == page.evaluate(
                "getComputedStyle(document.body).backgroundColor"
            )
        page.emulate_media(forced_colors="none")
        if width == 1280:
            page.evaluate("document.documentElement.style.zoom = 2")
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
            assert problems_of(page) == []
