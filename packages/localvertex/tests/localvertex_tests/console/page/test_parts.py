"""The parts of ui/ and the event stream in a real browser, drawn by the page's own modules."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.support.axe import problems_of
from localvertex_tests.support.run_records import write_job
from playwright.sync_api import Browser, Page, expect

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server, wait_until

pytestmark = [needs_chromium, pytest.mark.slow]

HOSTILE = '<img src=x onerror="window.isHit = true"><script>window.isHit = true</script>'
NONE = "\N{EN DASH}"
IMPORTS = """
const [ui, { follow }, { route }] =
  await Promise.all(["ui/ui", "server/server", "routes"].map((each) => import(`/console/${each}.js`)));
const { html, render, Confirm, Values, Code, duration, Frame, link } = ui;
const place = document.querySelector("main");
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    work_dir: Path = tmp_path_factory.mktemp("parts") / "runs"
    write_job(work_dir, 1)
    with Server(work_dir) as found:
        yield found


@pytest.fixture
def page(browser: Browser, server: Server) -> Iterator[Page]:
    with opened(browser, server, "#/no/view") as found:
        expect(found.locator(".empty")).to_be_visible()
        yield found


def run(page: Page, script: str, value: Any = None) -> Any:
    """Run a script with the modules of the page."""
    return page.evaluate(f"async (value) => {{ {IMPORTS} {script} }}", value)


def test_a_dialog_keeps_the_focus_and_gives_it_back(page: Page) -> None:
    run(
        page,
        """
        place.insertAdjacentHTML("beforeend", "<button id=opener>Open</button><div id=box></div>");
        const box = document.querySelector("#box");
        window.calls = [];
        const close = () => { calls.push("closed"); render(null, box); };
        const confirm = async () => {
          calls.push("done");
          await new Promise((done) => { window.finish = done; });
          if (calls.length < 2) throw new Error("no such run");
        };
        document.querySelector("#opener").onclick = () => render(html`<${Confirm} title="Delete the run?"
          action="Delete" onConfirm=${confirm} onClose=${close}>Its files are deleted.<//>`, box);
        """,
    )
    page.locator("#opener").focus()
    page.keyboard.press("Enter")
    dialog = page.get_by_role("dialog", name="Delete the run?")
    expect(dialog).to_be_visible()
    for _ in range(5):
        page.keyboard.press("Tab")
        # The browser's own bar is the body of the page.
        assert page.evaluate("document.activeElement.closest('dialog') || document.activeElement === document.body")
    assert problems_of(page) == []
    delete = dialog.get_by_role("button", name="Delete")
    delete.focus()
    for key in ("Enter", "Enter", "Escape"):
        # While it is being done it is not done again, and the dialog stays open.
        page.keyboard.press(key)
    page.evaluate("finish()")
    expect(dialog.get_by_role("alert")).to_contain_text("no such run")
    expect(delete).to_be_focused()
    page.keyboard.press("Escape")
    expect(dialog).to_have_count(0)
    assert page.evaluate("document.activeElement.id") == "opener"
    page.keyboard.press("Enter")
    delete.click()
    page.evaluate("finish()")
    expect(dialog).to_have_count(0)
    assert page.evaluate("calls") == ["done", "closed", "done", "closed"]


def test_values_are_text_whatever_they_are(page: Page) -> None:
    hostile: dict[str, Any] = {
        HOSTILE: HOSTILE,
        "list": [HOSTILE],
        "vnode": {"type": "img", "props": {"src": "x"}, "__k": None},
    }
    hostile |= {"long": [{"text": HOSTILE}] * 3, "none": None, "no": False, "zero": 0, "empty": ""}
    run(
        page,
        "render(html`<div><${Values} values=${value} /><${Code} text=${Object.keys(value)[0]} /></div>`, place);",
        hostile,
    )
    assert page.locator("main img, main script").count() == 0
    assert page.evaluate("window.isHit") is None
    shown = page.locator("dd").all_inner_texts()
    assert shown[0] == HOSTILE
    assert shown[3:] == ["3 items", NONE, "false", "0", NONE]
    page.get_by_text("3 items").click()
    assert HOSTILE.replace('"', '\\"') in page.locator("details[open] pre").inner_text()


def test_long_names_break_between_words_and_lines_of_a_command_before_options(page: Page) -> None:
    names = {"boot_disk_size_gigabytes": 1, "_" * 60: 2, "x" * 60: 3}
    command = " ".join(f"--parameter-{n} a=b--c" for n in range(30))
    script = """
        place.style.width = "300px";
        render(html`<div><${Values} values=${value[0]} /><${Code} text=${value[1]} /></div>`, place);
        const tops = (node) => [...node.childNodes].map((each) => {
          const range = document.createRange();
          range.selectNodeContents(each);
          return new Set([...range.getClientRects()].map((box) => box.top)).size;
        });
        return [tops(document.querySelector("dt bdi")), [...document.querySelectorAll("pre .nowrap")].map(tops),
          place.scrollWidth <= place.clientWidth];
    """
    lines, options, is_inside = run(page, script, [names, command])
    assert is_inside
    assert sorted(set(lines)) == [0, 1]
    assert options == [[1]] * 30
    assert page.locator("pre").text_content() == command
    assert page.locator("dt").all_text_contents() == list(names)


def test_long_json_text_is_folded_and_no_number_of_it_changes(page: Page) -> None:
    content = {"text": 'a  b \\" c', "list": list(range(40))}
    texts = [json.dumps(content), f"[{'1234567890' * 10}]", "[" * 100, '{"short": 1}']
    run(page, "render(html`<${Values} values=${value} />`, place);", {str(n): each for n, each in enumerate(texts)})
    assert page.locator("dd").all_inner_texts() == ["Show JSON", "Show JSON", *texts[2:]]
    shown = page.locator("dd pre").all_text_contents()
    assert shown == [json.dumps(content, indent=2), texts[1]]


NAMES = ["loss", "accuracy", "images_per_second", "seconds_left", "epoch", "validation_loss", "validation_epoch"]


def test_a_new_process_breaks_the_lines_of_its_pace_and_its_first_guesses_are_left_out(page: Page) -> None:
    first = [[step, 10.0 + step, 2.0, 0.5, 100.0, 60.0 - step, step / 4] for step in range(1, 9)]
    second = [[step, 40.0 + step, 1.0, 0.5, 100.0, 60.0 - step, step / 4] for step in range(7, 12)]
    first[0][5] = second[0][5] = 9000.0
    evaluated = [[4, 14.5, None, None, None, None, None, 3.0, 1.0], [8, 50.0, *[None] * 5, 1.5, 2.0]]
    curve = {"names": NAMES, "points": [*first, *second], "evaluated": evaluated, "resumes": [[30.0, 6]]}
    script = """
      const { linesOf } = await import("/console/jobs/curves.js");
      const [curve, ...asked] = value;
      return asked.map(([name, axis]) => linesOf({ curve, start: 10 }, name, axis));
    """

    def lines(curve: dict[str, Any], *asked: tuple[str, str]) -> Any:
        return run(page, script, [curve, *asked])

    def values(line: Any) -> list[Any]:
        return [value for _, value in line]

    every = [(name, "time") for name in NAMES[:4]]
    loss, _, speed, left = lines(curve, *every)
    assert values(loss["kept"]) == [2.0] * 6 + [None] * 2 + [1.0] * 5
    assert values(loss["lost"]) == [None] * 5 + [2.0] * 3 + [None] * 5
    assert loss["validation"] == [[4.5, 3.0], [40.0, 1.5]]
    assert values(left["kept"]) == [None, *range(58, 53, -1), None, None, None, None, *range(52, 48, -1)]
    assert values(speed["kept"]).count(100.0) == 11
    for found in (speed, left):
        assert [x for x, _ in found["kept"]] == sorted(x for x, _ in found["kept"])
        assert (values(found["kept"])[8], len(found["kept"])) == (None, 14)
    # By step and by epoch, what a restart discarded is not there.
    by_step, by_epoch = lines(curve, ("loss", "step"), ("loss", "epoch"))
    assert by_step["kept"] == [[step, 2.0] for step in range(1, 7)] + [[step, 1.0] for step in range(7, 12)]
    assert (by_step["lost"], by_step["validation"]) == ([], [[4, 3.0], [8, 1.5]])
    assert (by_epoch["kept"][0], by_epoch["validation"]) == ([0.25, 2.0], [[1.0, 3.0], [2.0, 1.5]])
    few = lines(curve | {"points": first[:2], "resumes": []}, ("seconds_left", "time"))
    assert values(few[0]["kept"]) == [9000.0, 58.0], "there is nothing but guesses"


def test_smoothing_is_an_exponential_mean_that_begins_with_the_first_value(page: Page) -> None:
    script = "const { smoothed } = await import('/console/jobs/curves.js'); return smoothed(value, 0.5);"
    assert run(page, script, [[1, 4.0], [2, None], [3, 1.0]]) == [[1, 4.0], [2, None], [3, 2.0]]


def test_the_values_of_a_chart_are_read_by_keyboard_and_it_is_enlarged_by_mouse(page: Page) -> None:
    script = """
      const { Curves } = await import("/console/jobs/curves.js");
      render(html`<${Curves} steps=${new Map([["a", value]])} start=${10} names=${["a", "b"]} />`, place);
    """
    losses = [0.5, 0.25, 9.0, None, 0.125]
    points: list[Any] = [[n + 1, 10.0 + min(n, 3), loss, None, None, None] for n, loss in enumerate(losses)]
    curve: dict[str, Any] = {"names": NAMES, "points": points, "evaluated": [], "resumes": []}
    run(page, script, curve)
    chart = page.get_by_role("slider", name="Loss by time")
    expect(chart).to_have_attribute("aria-valuetext", "0.125 at 3.0 s")
    chart.focus()
    for key, text in (
        ("ArrowLeft", "9 at 2.0 s"),
        ("ArrowLeft", "0.25 at 1.0 s"),
        ("Home", "0.5 at 0.0 s"),
        ("ArrowLeft", "0.5 at 0.0 s"),
        ("PageDown", "0.25 at 1.0 s"),
        ("ArrowRight", "9 at 2.0 s"),
    ):
        page.keyboard.press(key)
        expect(chart).to_have_attribute("aria-valuetext", text)
    expect(page.locator("figcaption", has_text="Loss")).to_contain_text("9 at 2.0 s")
    page.keyboard.press("Tab")
    expect(chart).to_have_attribute("aria-valuetext", "0.125 at 3.0 s")
    assert problems_of(page) == []
    for label, choice in (("by", "step"), ("smoothed", "0.9")):
        page.get_by_role("combobox", name=label, exact=True).select_option(choice)
    page.get_by_label("Log scale").check()
    expect(page.get_by_role("slider", name="Loss by step")).to_have_attribute("aria-valuemax", "4")
    # One point, and a training of many days.
    page.get_by_role("combobox", name="by", exact=True).select_option("time")
    run(page, script, curve | {"points": [[1, 10.0, 0.5, None, None, 4e7]]})
    expect(chart).to_have_attribute("aria-valuetext", "0.5 at 0.0 s")
    expect(page.get_by_role("slider", name="Time left")).to_have_attribute("aria-valuetext", "462 d 23 h at 0.0 s")


def test_a_frame_has_no_origin_and_no_scripts(page: Page) -> None:
    script = """
      render(html`<${Frame} src="data:text/html,<script>parent.isHit = true</script>" title="a" />`, place);
      return place.querySelector("iframe").getAttribute("sandbox");
    """
    assert run(page, script) == ""


def test_what_differs_between_runs_and_what_is_the_same(page: Page) -> None:
    def record(parameters: dict[str, Any], metrics: dict[str, Any], path: str, state: str) -> dict[str, Any]:
        task = {"path": path, "title": "train", "kind": "step", "state": state, "seconds": 1.0, "attempts": 1}
        found = [{"task": "train", "artifact": "m", "name": name, "value": value} for name, value in metrics.items()]
        return {"parameters": parameters, "metrics": found, "tasks": [task]}

    runs = [
        record({"rate": 0.1, "size": 3}, {"accuracy": 0.5, "n": 4}, "train", "SUCCEEDED"),
        record({"rate": 0.2, "size": 3, "extra": None}, {"accuracy": 0.75}, "loop/train", "FAILED"),
    ]
    script = """
      const rows = await import("/console/comparing/rows.js");
      return [rows.parametersOf(value), rows.metricsOf(value), rows.stepsOf(value)];
    """
    parameters, metrics, steps = run(page, script, runs)
    assert {each["name"]: each["differs"] for each in parameters} == {"rate": True, "size": False, "extra": True}
    assert [each["is_set"] for each in parameters[2]["values"]] == [False, True]
    accuracy, number = metrics
    assert (accuracy["values"], accuracy["differences"], accuracy["best"]) == ([0.5, 0.75], [None, 0.25], [1])
    assert (number["values"], number["differences"], number["best"]) == ([4, None], [None, None], [])
    assert [(each["path"], [cell and cell["state"] for cell in each["cells"]]) for each in steps["rows"]] == [
        ("train", ["SUCCEEDED", None]),
        ("loop/train", [None, "FAILED"]),
    ]


def test_the_best_value_is_marked_only_where_the_direction_is_known(page: Page) -> None:
    given = {
        "val_accuracy": ([0.5, 0.7, 0.7], [1, 2]),
        "validationLoss": ([0.5, 0.7, 0.6], [0]),
        "loss": (["NaN", 0.7, 0.6], [2]),
        "auc": (["Infinity", "high", True], []),
        "accuracy": ([0.5, 0.5, 0.5], []),
        # The score of a constant answer: the data are easier, not the model better.
        "baseline_accuracy": ([0.5, 0.7], []),
        "num_images": ([1, 2, 3], []),
        "accuracy_loss": ([1, 2, 3], []),
        "glossary": ([1, 2, 3], []),
    }
    script = """
      const { metricsOf } = await import("/console/comparing/rows.js");
      const runOf = (name, value) => ({ tasks: [], metrics: [{ task: "t", artifact: "m", name, value }] });
      return Object.fromEntries(Object.entries(value).map(([name, values]) =>
        [name, metricsOf(values.map((each) => runOf(name, each)))[0].best]));
    """
    values = {name: found for name, (found, _) in given.items()}
    assert run(page, script, values) == {name: best for name, (_, best) in given.items()}


def test_curves_are_those_of_each_run_the_longest_of_its_replicas(page: Page) -> None:
    script = """
      const { curvesOf } = await import("/console/comparing/rows.js");
      const job = (...lengths) => new Map([["train", { steps: lengths.map((n) => ({ points: Array(n).fill(0) })) }]]);
      const [{ task, series }] = curvesOf([{ jobs: job(1, 3) }, { jobs: new Map() }, { jobs: job(2) }]);
      return [task, series.map((each) => each && each.points.length)];
    """
    assert run(page, script) == ["train", [3, None, 2]]


@pytest.mark.parametrize(
    "damaged",
    [
        None,
        7,
        [],
        {},
        {"rows": 1, "annotationSpecs": {"map": 1}},
        {"annotationSpecs": [None], "rows": [{"row": ["x"]}]},
    ],
)
def test_a_matrix_or_curve_that_is_damaged_or_too_large_is_not_drawn(page: Page, damaged: Any) -> None:
    script = """
      const { matrixIn, rocIn } = await import("/console/runs/artifact.js");
      return [matrixIn(value), rocIn(value), rocIn([value, value])];
    """
    assert run(page, script, damaged) == [None, None, None]


def test_a_matrix_of_100_classes_and_a_curve_are_drawn(page: Page) -> None:
    def matrix(num_classes: int) -> dict[str, Any]:
        specs = [{"displayName": f"class {number}"} for number in range(num_classes)]
        return {"annotationSpecs": specs, "rows": [{"row": [1.0] * num_classes} for _ in specs]}

    points = [{"falsePositiveRate": x, "recall": y} for x, y in ((1, 1), (0, 0), (0.5, 1))]
    script = """
      const { matrixIn, rocIn } = await import("/console/runs/artifact.js");
      return [...value.matrices.map((each) => matrixIn(each)?.rows.length), rocIn(value.points)];
    """
    found = run(page, script, {"matrices": [matrix(100), matrix(101)], "points": points})
    assert found == [100, None, [[0, 0], [0.5, 1], [1, 1]]]


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("NEEDLE", b"plain needle"),
        ("needle", b"\x1b[31mred nee\x1b[0m\x1b[1mdle\x1b[0m"),
        ("needle", b"\xff\xe2\x80needle\xc3"),
        ("\u00dcBER", "x \u00fcber".encode()),
        (".*", b"a.*"),
        ("\N{REPLACEMENT CHARACTER}", b"\xff"),
    ],
)
def test_lines_of_a_log_are_found_as_they_are_shown(page: Page, server: Server, text: str, line: bytes) -> None:
    log = server.work_dir / "run-00001" / "train" / "log.txt"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"first \x1b]0;title\x07\n" + line + b"\nlast\n" + line)
    script = """
      const { linesWith } = await import("/console/logs/search.js");
      const address = "/local/runs/run-00001/log/file?task=train&file=log.txt";
      return [await linesWith(value, address), await linesWith("title", address)];
    """
    start = log.read_bytes().index(b"\n") + 1
    found, hidden = run(page, script, text)
    assert found == {"offsets": [start, start + len(line) + 6], "size": log.stat().st_size, "error": ""}
    assert hidden["offsets"] == []


def test_a_column_that_the_page_does_not_know_shows_its_value(page: Page) -> None:
    script = """
      const { columnsOf } = await import("/console/runs/runs.js");
      const columns = [["name", "Run"], ["state", "State"], ["num_resumes", "Resumes"]];
      const shown = columnsOf("runs", { columns: columns.map(([by, title]) => ({ by, title })) }, ["metrics.loss"]);
      const cell = document.createElement("div");
      render(html`<p>${shown[3].cell({ num_resumes: 1234 })}</p>`, cell);
      return [shown.map(({ title }) => title), cell.textContent];
    """
    assert run(page, script) == [["Run", "State", "loss", "Resumes"], "1,234"]


def test_a_log_that_is_too_large_to_search_holds_no_connection(page: Page, server: Server) -> None:
    log = server.work_dir / "run-00001" / "train" / "log.txt"
    log.parent.mkdir(exist_ok=True)
    log.touch()
    os.truncate(log, 300_000_000)
    script = """
      const { linesWith } = await import("/console/logs/search.js");
      const address = "/local/runs/run-00001/log/file?task=train&file=log.txt";
      const errors = [];
      const late = new Promise((resolve) => setTimeout(() => resolve("no connection"), 5000));
      // A browser has six connections to a server.
      for (let each = 0; each < 7; each++)
        errors.push(await Promise.race([late, linesWith("x", address).catch(({ message }) => message)]));
      return errors;
    """
    assert run(page, script) == ["The log has 300 MB; download it to search it"] * 7
    log.unlink()


def test_a_search_that_is_no_longer_wanted_ends_and_the_page_answers_during_a_search(
    page: Page, server: Server
) -> None:
    log = server.work_dir / "run-00001" / "train" / "log.txt"
    log.parent.mkdir(exist_ok=True)
    log.write_bytes(b"needle\n" * 300_000)
    script = """
      const { linesWith } = await import("/console/logs/search.js");
      const address = "/local/runs/run-00001/log/file?task=train&file=log.txt";
      let [isAnswered, isWanted] = [false, true];
      const wait = linesWith("needle", address, () => { setTimeout(() => { isAnswered = true; }); return isWanted; });
      const all = await wait;
      const seen = isAnswered;
      isWanted = false;
      return [all.offsets.length, seen, await linesWith("needle", address, () => isWanted)];
    """
    assert run(page, script) == [10_000, True, {"offsets": [], "size": -1, "error": ""}]
    log.unlink()


def test_a_duration_has_two_units_at_most(page: Page) -> None:
    given = [None, 0, 0.44, 9.96, 59.6, 185, 3599.7, 7800, 86400, 273600]
    texts = [NONE, "0.0 s", "0.4 s", "10 s", "1 min", "3 min 5 s", "1 h", "2 h 10 min", "1 d", "3 d 4 h"]
    assert run(page, "return value.map(duration);", given) == texts


def test_numbers_have_one_form_in_all_views(page: Page) -> None:
    given = [None, "text", 0, 1_234_567, -3, 0.934567, 1234.5678, 0.00001234, 2.5e12]
    texts = [NONE, "text", "0", "1,234,567", "-3", "0.93457", "1,234.6", "1.234e-5", "2,500,000,000,000"]
    assert run(page, "return value.map(ui.figure);", given) == texts
    assert run(page, "return value.map(ui.signed);", [0.12345, -0.5, 0]) == ["+0.123", "\N{MINUS SIGN}0.5", "0"]
    pairs = [[1, 3], [1, None], ["1", 3]]
    assert run(page, "return value.map(([a, b]) => ui.change(a, b));", pairs) == ["+2", NONE, NONE]
    assert run(page, "return value.map(ui.bytes);", [0, 999, 1000, 1_500_000]) == [
        "0 B",
        "999 B",
        "1.00 kB",
        "1.50 MB",
    ]
    assert run(page, "return value.map(ui.percent);", [0, 0.9346, 1]) == ["0%", "93.5%", "100%"]


def test_an_address_leads_back_to_its_values_whatever_they_contain(page: Page) -> None:
    names = ["a/b", "a?b=c", "#", "%", "ü ☃", "..", HOSTILE, "loop/1/train"]
    script = "return value.map((each) => route(new URL(link(['runs', 'id', each], { tab: each }), location).hash)"
    found = run(page, f"{script}).map(({{ name, params, query }}) => [name, params.task, query.get('tab')]);", names)
    assert found == [["run", name, name] for name in names]
    for fragment in ("#/runs/%E0%A4%A", "#/runs/a/b/c", "#/other"):
        assert run(page, "return route(value).name;", fragment) == "not found"
    outside = ("#/runs/..%2F..%2Fapi%2Ftoken", "#/runs/a?tab=log&file=../../../api/token", "#/models/a/..")
    for fragment in outside:
        assert run(page, "return route(value).name;", fragment) == "not found"
    for fragment in ("", "#", "#/"):
        assert run(page, "return route(value).name;", fragment) == "runs"


def test_a_tab_has_one_stream_and_none_while_it_is_hidden(page: Page) -> None:
    run(
        page,
        """
        const Real = EventSource;
        window.streams = [];
        window.EventSource = class extends Real { constructor(url) { super(url); streams.push(this); } };
        window.seen = [];
        window.hide = (isHidden) => {
          Object.defineProperty(document, "hidden", { value: isHidden, configurable: true });
          document.dispatchEvent(new Event("visibilitychange"));
        };
        follow({}, { runs: () => seen.push("first") });
        window.close = follow({}, { runs: () => seen.push("second") });
        """,
    )
    states = "streams.map((each) => each.readyState)"
    wait_until(lambda: page.evaluate("seen.length") == 1)
    assert page.evaluate(states) == [2, 1]
    page.evaluate("hide(true)")
    assert page.evaluate(states) == [2, 2]
    page.evaluate("hide(false)")
    wait_until(lambda: page.evaluate("seen.length") == 2)
    assert page.evaluate(states) == [2, 2, 1]
    page.evaluate("close()")
    page.evaluate("hide(false)")
    assert page.evaluate(states) == [2, 2, 2]
    assert page.evaluate("seen") == ["second", "second"]


def test_a_view_that_fails_shows_why_and_the_others_still_work(browser: Browser, server: Server) -> None:
    with opened(browser, server, "#/no/view", expected="") as page:
        page.route("**/console/**/models/models.js", lambda route: route.abort())
        page.goto(f"{server.url}/#/models")
        expect(page.get_by_role("alert")).to_contain_text("This page cannot be shown")
        expect(page.get_by_role("alert")).to_contain_text("Is the server running?")
        page.get_by_role("link", name="Runs", exact=True).click()
        expect(page.locator("tbody tr")).to_have_count(1)
        page.get_by_role("link", name="Models").click()
        again = page.get_by_role("button", name="Try again")
        expect(again).to_be_visible()
        page.unroute("**/console/**/models/models.js")
        again.click()
        expect(page.get_by_role("heading", name="Models", exact=True)).to_be_visible()
