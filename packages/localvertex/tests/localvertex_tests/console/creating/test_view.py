"""A run created in a real browser: upload, the form with its errors, the machine check, and the start."""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.axe import problems_of
from playwright.sync_api import Browser, Page, expect

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server, wait_until

pytestmark = [needs_chromium, pytest.mark.slow]

HOSTILE = '<img src=x onerror="document.title=1"></script>{{7*7}} ${1} ü\u202e'
PARAMETERS = {
    "epochs": {"parameterType": "NUMBER_INTEGER", "defaultValue": 20.0, "description": HOSTILE},
    "rate": {"parameterType": "NUMBER_DOUBLE"},
    "mode": {"parameterType": "STRING", "literals": ["a", HOSTILE], "defaultValue": "a"},
    "is_on": {"parameterType": "BOOLEAN", "isOptional": True},
    "note": {"parameterType": "STRING", "defaultValue": HOSTILE},
    "items": {"parameterType": "LIST", "defaultValue": [1, "two"]},
    "__proto__": {"parameterType": "STRING", "defaultValue": "safe"},
    "constructor": {"parameterType": "STRUCT", "defaultValue": {"a": 1}},
}
MANY = {f"more_{number}": {"parameterType": "STRING", "defaultValue": "x"} for number in range(8)}


@pytest.fixture(scope="module")
def content(light_pipeline: dict[str, Any]) -> str:
    """Return a pipeline that runs at once, with these parameters."""
    declared = light_pipeline["root"]["inputDefinitions"]["parameters"] | PARAMETERS | MANY
    return json.dumps(
        light_pipeline | {"root": light_pipeline["root"] | {"inputDefinitions": {"parameters": declared}}}
    )


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    with Server(tmp_path_factory.mktemp("create") / "runs") as found:
        yield found


def upload(page: Page, name: str, content: str | bytes) -> None:
    data = content.encode() if isinstance(content, str) else content
    page.set_input_files("#pipeline-file", {"name": name, "mimeType": "text/plain", "buffer": data})


def drop(page: Page, name: str, content: str, *, num_bytes: int = 0) -> None:
    """Drop a file as a user does, filled up with letters in the browser."""
    transfer = page.evaluate_handle(
        """([name, text, count]) => {
          const each = new DataTransfer();
          const close = text.endsWith('["') ? '"]' : "";
          each.items.add(new File([text, "x".repeat(count), close], name));
          return each;
        }""",
        [name, content, num_bytes],
    )
    # The page listens once it is shown, and asks for the files after that.
    expect(page.get_by_role("heading", name="Compiled files in")).to_be_visible()
    page.dispatch_event(".drop", "drop", {"dataTransfer": transfer})


def error_of(page: Page, name: str) -> Any:
    return page.locator(f'[id="parameter-{name}-error"]')


def field(page: Page, name: str) -> Any:
    return page.locator(f'[id="parameter-{name}"]')


@pytest.mark.parametrize("width", [1280, 390])
def test_a_file_becomes_a_form_and_the_form_a_run(browser: Browser, server: Server, content: str, width: int) -> None:
    before = {each.parent.name for each in server.work_dir.glob("*/run.json")}
    with opened(browser, server, "#/create", width=width) as page:
        (upload if width == 390 else drop)(page, "hello.json", content)
        expect(page.get_by_role("heading", name="Create run: light")).to_be_visible()
        expect(page.get_by_role("group", name="Graph")).to_contain_text("importer")
        expect(page.get_by_text("no-pipeline-root")).to_be_visible()
        expect(error_of(page, "rate")).to_have_count(0)
        page.get_by_role("button", name="Start run").click()
        expect(error_of(page, "rate")).to_contain_text("required; expected a number, such as 0.5")
        expect(field(page, "rate")).to_be_focused()
        field(page, "rate").fill("0,5")
        expect(error_of(page, "rate")).to_contain_text("found '0,5'; expected a number")
        field(page, "rate").fill("0.25")
        field(page, "items").fill('["a",')
        expect(error_of(page, "items")).to_contain_text("not JSON: Expecting value: line 1 column 6")
        field(page, "items").fill('["a", NaN]')
        expect(error_of(page, "items")).to_contain_text("NaN is not a number")
        field(page, "items").fill('["a", 2]')
        field(page, "mode").select_option(HOSTILE)
        field(page, "is_on").select_option("true")
        field(page, "__proto__").fill("own")
        field(page, "constructor").fill('{"__proto__": [1]}')
        page.get_by_label("Display name").fill(HOSTILE)
        page.get_by_label("Labels").fill("team=a")
        expect(page.get_by_text("6 changed")).to_be_visible()
        expect(page.locator(".field-control .error")).to_have_count(0)
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        assert problems_of(page) == []
        page.get_by_role("button", name="Start run").click()
        expect(page).to_have_url(re.compile("#/runs/light-"))
        run_id = page.evaluate("location.hash.slice(7)")
        assert page.title() != "1"
    assert run_id not in before
    path = server.work_dir / run_id / "run.json"
    record = wait_until(lambda: (found := json.loads(path.read_text()))["end_time"] and found)
    assert record["parameters"] == {
        "x": "y",
        "epochs": 20,
        "rate": 0.25,
        "mode": HOSTILE,
        "is_on": True,
        "note": HOSTILE,
        "items": ["a", 2],
        "__proto__": "own",
        "constructor": {"__proto__": [1]},
    } | dict.fromkeys(MANY, "x")
    job = server.call("GET", f"pipelineJobs/{run_id}").json()
    assert (job["displayName"], job["labels"]["team"]) == (HOSTILE, "a")


def test_changed_values_are_marked_and_reset(browser: Browser, server: Server, content: str) -> None:
    with opened(browser, server, "#/create") as page:
        upload(page, "hello.json", content)
        row = page.locator(".field", has=field(page, "epochs"))
        expect(row).not_to_contain_text("changed")
        field(page, "epochs").fill("3")
        expect(row).to_contain_text("changed")
        field(page, "rate").fill("1")
        command = "python -m localvertex run hello.json --parameter epochs=3 --parameter rate=1 --work-dir"
        expect(page.locator(".code pre")).to_have_text(f"{command} {server.work_dir}")
        page.get_by_role("button", name="Copy").click()
        page.get_by_role("button", name="Fit").click()
        page.get_by_label("Only changed").check()
        expect(page.get_by_text("2 of 17")).to_be_visible()
        row.get_by_role("button", name="Reset to default").click()
        expect(page.get_by_text("1 of 17")).to_be_visible()
        page.get_by_role("button", name="Reset all").click()
        page.get_by_label("Only changed").uncheck()
        expect(field(page, "epochs")).to_have_value("20")
        expect(row).not_to_contain_text("changed")
        expect(page.get_by_text("Correct the form first.")).to_be_visible()
        page.get_by_label("Find a parameter").fill("more_3")
        expect(page.get_by_text("1 of 17")).to_be_visible()
        assert page.evaluate("location.hash") == "#/create", "only one button starts a run"


def test_long_texts_of_a_file_leave_room_for_the_form(browser: Browser, server: Server, content: str) -> None:
    long = json.loads(content)
    long["pipelineInfo"] = {"name": "n" * 5000, "description": "long description\n" * 20_000}
    long["root"]["inputDefinitions"]["parameters"]["epochs"]["description"] = "word " * 10_000
    with opened(browser, server, "#/create", width=390) as page:
        upload(page, "long_" * 40 + ".json", json.dumps(long))
        expect(field(page, "epochs")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
        for selector in ("h1", ".description", "#parameter-epochs-hint"):
            assert page.locator(selector).bounding_box()["height"] <= 240  # type: ignore[index]
        assert problems_of(page) == []


def test_what_is_not_a_pipeline_is_one_line_on_the_page(browser: Browser, server: Server, package: Path) -> None:
    compiled = package / "tests/localvertex_tests/constructs/compiled"
    files: dict[str, str | bytes] = {
        "photo.png": b"\x89PNG\r\n\x1a\n\x00",
        "latin-1.json": '{"a": "é"}'.encode("latin-1"),
        "nothing.json": "",
        "twice.json": '{"a": 1, "a": 2}',
        "nan.json": '{"root": NaN}',
        "bomb.yaml": "a: &a x\nb: &b [*a]\n" + "c: [" + "[" * 200,
        f"{HOSTILE}.json": "[]",
    }
    with opened(browser, server, "#/create", expected="status of 400") as page:
        for name, content in files.items():
            upload(page, name, content)
            expect(page.get_by_role("alert")).to_contain_text(name.rpartition("/")[2].partition("\u202e")[0][-20:])
            text = page.get_by_role("alert").locator("p").inner_text()
            assert "\n" not in text
            assert len(text) < 400
        drop(page, "large.json", '["', num_bytes=10_000_000)
        expect(page.get_by_role("alert")).to_contain_text("large.json: this is not a compiled pipeline")
        drop(page, "huge.json", "", num_bytes=20 * 2**20 + 1)
        expect(page.get_by_role("alert")).to_contain_text("huge.json is larger than 20 MiB")
        assert page.title() != "1"
        # As Windows PowerShell writes the output of a program.
        upload(page, "utf-16.json", (compiled / "accelerators.json").read_text().encode("utf-16"))
        expect(page.get_by_role("heading", level=1)).to_have_text("Create run: accelerators")


def test_the_machine_check_follows_the_region_and_refusals_prevent_the_start(
    browser: Browser, server: Server, package: Path
) -> None:
    compiled = package / "tests" / "localvertex_tests" / "constructs" / "compiled"
    before = len(list(server.work_dir.glob("*/run.json")))
    with opened(browser, server, "#/create") as page:
        upload(page, "accelerators.json", (compiled / "accelerators.json").read_text())
        start = page.get_by_role("button", name="Start run")
        page.get_by_label("Region").select_option("europe-west6")
        expect(page.get_by_text("Nearest: NVIDIA_TESLA_T4 in europe-west2")).to_be_visible()
        expect(start).to_be_disabled()
        expect(page.get_by_text("Vertex AI would refuse the machines")).to_be_visible()
        assert problems_of(page) == []
        page.get_by_label("Region").select_option("europe-west4")
        expect(page.get_by_text("Nearest:")).to_have_count(0)
        expect(start).to_be_enabled()
        page.get_by_role("link", name="Choose another pipeline").click()
        upload(page, "secret.yaml", (compiled / "kubernetes_secret.yaml").read_text())
        refusal = page.locator(".notice.bad", has_text="This pipeline cannot run here")
        expect(refusal).to_contain_text("settings of a Kubernetes cluster cannot be honoured locally")
        page.get_by_role("button", name="Start run").click()
        expect(page.get_by_role("alert")).to_contain_text("The run was not started")
    assert len(list(server.work_dir.glob("*/run.json"))) == before


def test_a_wrong_value_disables_the_start_until_it_is_corrected(browser: Browser, server: Server, limited: str) -> None:
    with opened(browser, server, "#/create") as page:
        upload(page, "limits.json", limited)
        start = page.get_by_role("button", name="Start run")
        for name, wrong, right in (("epochs", "-1", "3"), ("source", "/none", "/tmp")):
            field(page, name).fill(wrong)
            expect(error_of(page, name)).to_be_visible()
            expect(start).to_be_disabled()
            field(page, name).fill(right)
            expect(error_of(page, name)).to_have_count(0)
            expect(start).to_be_enabled()


def test_an_earlier_run_is_created_again_with_its_values(browser: Browser, server: Server, content: str) -> None:
    values = {"rate": 0.5, "note": "a\nb", "epochs": 20, "is_on": False}
    body = {"pipelineSpec": json.loads(content), "runtimeConfig": {"parameterValues": values}}
    job = server.call("POST", "pipelineJobs", body).json()
    run_id = job["name"].rpartition("/")[2]
    wait_until(lambda: server.call("GET", f"pipelineJobs/{run_id}").json().get("endTime"))
    with opened(browser, server, f"#/runs/{run_id}") as page:
        page.get_by_role("link", name="Run again").click()
        expect(field(page, "rate")).to_have_value("0.5")
        expect(field(page, "note")).to_have_value("a\nb")
        expect(field(page, "is_on")).to_have_value("false")
        field(page, "rate").fill("0.75")
        asked = list[str]()
        page.on("request", lambda each: asked.append(f"{each.method} {each.url}"))
        page.get_by_role("button", name="Start run").evaluate("each => { each.click(); each.click(); }")
        expect(page).to_have_url(re.compile(f"#/runs/(?!{run_id})light-"))
        again = page.url.rpartition("/")[2]
    found = server.call("GET", f"pipelineJobs/{again}").json()
    assert found["runtimeConfig"]["parameterValues"] == values | {"rate": 0.75}
    assert sum(each.startswith("POST ") and "/pipelineJobs" in each for each in asked) == 1


GROUPED = {
    "source": {"parameterType": "STRING", "defaultValue": "digits"},
    "metric": {"parameterType": "STRING", "defaultValue": "loss", "description": "What counts: loss, accuracy or f1."},
    "epochs": {"parameterType": "NUMBER_INTEGER", "defaultValue": 20.0},
    "seed": {"parameterType": "NUMBER_INTEGER", "defaultValue": 0.0},
}


@pytest.fixture(scope="module")
def limited(light_pipeline: dict[str, Any]) -> str:
    """Return a pipeline whose descriptions limit the values."""
    epochs, source = GROUPED["epochs"], GROUPED["source"]
    declared = {"x": {"parameterType": "STRING", "defaultValue": "y"}} | {
        "epochs": {**epochs, "description": "Passes over the data (1 to 100)."},
        "source": {**source, "description": "`digits` or an existing folder."},
    }
    return json.dumps(
        light_pipeline | {"root": light_pipeline["root"] | {"inputDefinitions": {"parameters": declared}}}
    )


@pytest.fixture(scope="module")
def grouped(light_pipeline: dict[str, Any]) -> str:
    """Return a pipeline with groups of parameters."""
    declared = light_pipeline["root"]["inputDefinitions"]["parameters"] | GROUPED
    description = "About cats.\nData: source\nTraining: metric; epochs, seed\nNote: it is slow"
    return json.dumps(
        light_pipeline
        | {
            "root": light_pipeline["root"] | {"inputDefinitions": {"parameters": declared}},
            "pipelineInfo": light_pipeline["pipelineInfo"] | {"description": description},
        }
    )


def test_groups_fold_what_is_seldom_changed_and_values_survive_leaving_the_view(
    browser: Browser, server: Server, grouped: str
) -> None:
    with opened(browser, server, "#/create") as page:
        upload(page, "grouped.json", grouped)
        expect(page.locator(".description")).to_have_text("About cats.\nNote: it is slow")
        assert page.locator(".field-group h3").all_inner_texts() == ["Data", "Training", "Other"]
        expect(field(page, "seed")).not_to_be_visible()
        page.get_by_text("2 more parameters").click()
        field(page, "seed").fill("7")
        page.get_by_text("2 more parameters (1 changed)").click()
        field(page, "metric").select_option("accuracy")
        assert problems_of(page) == []
        page.get_by_role("link", name="Runs", exact=True).click()
        expect(page.get_by_role("heading", level=1)).to_have_text("Runs")
        page.get_by_role("link", name="Create run", exact=True).first.click()
        upload(page, "grouped.json", grouped)
        expect(page.get_by_text("2 changed", exact=True)).to_be_visible()
        expect(field(page, "metric")).to_have_value("accuracy")
        field(page, "metric").select_option("another value…")
        field(page, "metric").fill("recall")
        page.get_by_text("2 more parameters (1 changed)").click()
        expect(field(page, "seed")).to_have_value("7")
        field(page, "seed").fill("x")
        expect(error_of(page, "seed")).to_be_visible()


def test_the_start_is_within_fifteen_tabs(browser: Browser, server: Server, grouped: str) -> None:
    with opened(browser, server, "#/create") as page:
        upload(page, "grouped.json", grouped)
        start = page.get_by_role("button", name="Start run")
        expect(start).to_be_visible()
        page.evaluate("document.activeElement?.blur()")
        for _ in range(15):
            page.keyboard.press("Tab")
            if start.evaluate("each => each === document.activeElement"):
                return
        pytest.fail("the focus did not reach the button")
