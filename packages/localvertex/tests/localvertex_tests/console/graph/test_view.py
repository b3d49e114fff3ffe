"""The graph in a real browser: mouse, keyboard, folding, iterations, and states that change in place."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.show.test_graph import spec as spec_of, task
from localvertex_tests.show.test_page import whole
from localvertex_tests.support.axe import problems_of
from playwright.sync_api import Browser, Locator, Page, expect

import localvertex
from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.runs import STEP
from vertex_testing.server import Server, wait_until

pytestmark = [needs_chromium, pytest.mark.slow]


@dsl.component(**STEP)
def wait(there: str, n: int) -> int:
    import os
    import time

    while not os.path.exists(there):
        time.sleep(0.02)
    return n


@dsl.pipeline(name="gated")
def gated(there: str) -> None:
    first = wait(there=there, n=1).set_caching_options(False)
    with dsl.ParallelFor(items=[1, 2], name="each") as item:
        wait(there=f"{there}.{item}", n=item).set_caching_options(False).after(first)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory, compile_pipeline: Callable[[Any, Path], Path]) -> Iterator[Server]:
    """Return a server with a run that failed in an iteration of its loop."""
    folder = tmp_path_factory.mktemp("graph")
    file = compile_pipeline(whole, folder / "whole.json")
    localvertex.run(file, options=localvertex.Options(work_dir=folder / "runs", run_id="whole"))
    compile_pipeline(gated, folder / "gated.json")
    with Server(folder / "runs") as started:
        yield started


def box(page: Page, name: str) -> Locator:
    """Return the part of a box that can be chosen; its label begins with the task's name."""
    return page.locator(f'.graph .choice[aria-label^="{name} "]')


def transform(page: Page) -> tuple[float, float, float]:
    """Return place and scale of the drawing."""
    text = str(page.locator(".graph > svg > g").get_attribute("transform"))
    x, y, scale = text.replace("translate(", "").replace(") scale(", " ").rstrip(")").split()
    return float(x), float(y), float(scale)


def middle(locator: Locator) -> tuple[float, float]:
    found = locator.bounding_box()
    assert found
    return found["x"] + found["width"] / 2, found["y"] + found["height"] / 2


def test_the_mouse_moves_enlarges_folds_and_selects(browser: Browser, server: Server) -> None:
    with opened(browser, server, "#/runs/whole") as page:
        expect(box(page, "check")).to_have_attribute("aria-label", "check 1 of 3 failed")
        page.locator(".graph > svg").scroll_into_view_if_needed()
        for _ in range(2):
            page.get_by_role("button", name="Larger").click()
        x, y, scale = transform(page)
        page.mouse.move(*middle(page.locator(".graph > svg")))
        page.mouse.wheel(0, 120)
        wait_until(lambda: transform(page)[1] < y)
        assert transform(page)[::2] == (x, scale)
        page.keyboard.down("Control")
        page.mouse.wheel(0, -240)
        page.keyboard.up("Control")
        wait_until(lambda: transform(page)[2] > scale * 1.2)
        page.get_by_role("button", name="Fit").click()
        # A drag that begins on a box moves the drawing and selects nothing.
        before = transform(page)
        at = middle(box(page, "check"))
        page.mouse.move(*at)
        page.mouse.down()
        page.mouse.move(at[0] + 6, at[1] + 8, steps=4)
        page.mouse.up()
        assert transform(page) != before
        assert "task" not in page.url
        assert page.url.endswith("#/runs/whole")
        # A closed group stays under the pointer, and its tasks are gone.
        place = box(page, "each").bounding_box()
        fold = page.locator('.graph .choice[aria-label^="each "] + .fold')
        fold.click()
        expect(box(page, "check")).to_have_count(0)
        assert place
        found = box(page, "each").bounding_box()
        assert found
        assert abs(found["x"] - place["x"]) + abs(found["y"] - place["y"]) < 2
        expect(box(page, "each")).to_have_attribute("aria-label", re.compile("^each for each Failed · "))
        fold.click()
        # A click selects the entry that explains the state.
        box(page, "check").click()
        page.wait_for_url("**/#/runs/whole/exit-handler-1%2Ffor-loop-*%2F1%2Fcheck*")
        expect(box(page, "check")).to_have_attribute("aria-pressed", "true")


def test_a_graph_begins_in_its_own_size_also_after_the_window_has_changed(browser: Browser, server: Server) -> None:
    with opened(browser, server, "#/runs/whole") as page:
        expect(box(page, "check")).to_be_visible()
        first = transform(page)
        frame = page.locator(".graph > svg").bounding_box()
        drawing = page.locator(".graph > svg > g").bounding_box()
        assert frame
        assert drawing
        assert frame["x"] <= drawing["x"]
        assert first[2] == 1
        sizes = page.locator(".graph svg text").evaluate_all(
            "all => all.map((each) => getComputedStyle(each).fontSize)"
        )
        assert min(float(each.removesuffix("px")) for each in sizes) >= 12
        page.set_viewport_size({"width": 820, "height": 900})
        wait_until(lambda: transform(page) != first)
        page.set_viewport_size({"width": 1280, "height": 900})
        wait_until(lambda: transform(page) == first)
        # What the user has chosen stays.
        page.get_by_role("button", name="Larger").click()
        scale = transform(page)[2]
        page.set_viewport_size({"width": 820, "height": 900})
        page.get_by_role("button", name="Smaller").click()
        assert transform(page)[2] == pytest.approx(scale / 1.25)


def test_a_graph_that_is_too_wide_begins_with_what_failed_in_the_middle(browser: Browser, server: Server) -> None:
    with opened(browser, server, "#/runs/whole?view=graph", width=390) as page:
        first = box(page, "check")
        expect(first).to_be_visible()
        assert abs(middle(page.locator(".graph > svg"))[0] - middle(first)[0]) < 2


def test_the_keyboard_reaches_every_box_folds_and_selects(browser: Browser, server: Server) -> None:
    with opened(browser, server, "#/runs/whole") as page:
        expect(box(page, "check")).to_be_visible()
        page.get_by_role("button", name="Fit").focus()
        page.keyboard.press("Tab")
        expect(page.locator(".graph > svg")).to_be_focused()
        expect(page.locator(".graph .keys")).to_be_visible()
        y = transform(page)[1]
        page.keyboard.press("ArrowDown")
        page.keyboard.press("+")
        assert transform(page)[1:] != (y, 1)
        page.keyboard.press("Tab")
        expect(box(page, "always")).to_be_focused()
        seen, names = set(), [str(each.get_attribute("data-id")) for each in page.locator(".graph .choice").all()]
        for key in ("ArrowDown",) * 14 + ("ArrowRight",) * 4 + ("ArrowUp",) * 14 + ("ArrowLeft",) * 4:
            seen.add(page.evaluate("document.activeElement.dataset.id"))
            page.keyboard.press(key)
        assert len(seen) >= len(names) / 2
        box(page, "two").focus()
        page.keyboard.press(" ")
        expect(box(page, "two")).to_have_attribute("aria-expanded", "false")
        expect(box(page, "two")).to_be_focused()
        page.keyboard.press(" ")
        expect(box(page, "two")).to_have_attribute("aria-expanded", "true")
        box(page, "close").focus()
        page.keyboard.press("Enter")
        page.wait_for_url("**/#/runs/whole/close*")
        page.keyboard.press("Escape")
        expect(page.locator(".graph > svg")).to_be_focused()


def test_the_states_of_one_iteration_are_shown_when_it_is_chosen(browser: Browser, server: Server) -> None:
    with opened(browser, server, "#/runs/whole") as page:
        page.get_by_role("button", name="Fit").click()
        choice = page.get_by_label("Item of each")
        expect(choice).to_be_visible()
        expect(choice.locator("option")).to_have_text(["All 3 items", "0: 5", "1: 7", "2: 9"])
        choice.select_option("0")
        expect(box(page, "check")).to_have_attribute("aria-label", re.compile("^check Succeeded · "))
        box(page, "check").click()
        page.wait_for_url("**/*%2F0%2Fcheck*")
        choice.select_option("1")
        expect(box(page, "check")).to_have_attribute("aria-label", re.compile("^check Failed · "))


def test_a_running_step_changes_in_place(browser: Browser, server: Server, tmp_path: Path) -> None:
    there = tmp_path / "there"
    content = json.loads((server.work_dir.parent / "gated.json").read_text())
    body = {"pipelineSpec": content, "runtimeConfig": {"parameterValues": {"there": str(there)}}}
    server.call("POST", "pipelineJobs?pipelineJobId=gated", body).raise_for_status()
    asked: list[str] = []
    with opened(browser, server, "#/runs") as page:
        page.on(
            "request",
            lambda each: asked.append(each.url) if "/graph" in each.url and "console" not in each.url else None,
        )
        page.goto(f"{server.url}/#/runs/gated")
        expect(box(page, "wait")).to_have_attribute("aria-label", "wait Running")
        expect(box(page, "each")).to_have_attribute("aria-label", "each for each Pending")
        names = page.locator(".graph .box").evaluate_all("all => all.map((each) => each.getAttribute('transform'))")
        there.touch()
        expect(box(page, "wait-2")).to_have_attribute("aria-label", "wait-2 2 of 2 running")
        Path(f"{there}.1").touch()
        expect(box(page, "wait-2")).to_have_attribute("aria-label", "wait-2 1 of 2 running")
        Path(f"{there}.2").touch()
        expect(box(page, "wait-2")).to_have_attribute("aria-label", "wait-2 2 of 2 succeeded")
        expect(page.locator(".graph .counts")).to_have_text("2 succeeded")
        after = page.locator(".graph .box").evaluate_all("all => all.map((each) => each.getAttribute('transform'))")
        assert (after, len(asked)) == (names, 1)


MOUNT = """async (content) => {
  const { html, render, useState } = await import("/console/ui/html.js");
  const { Graph } = await import("/console/graph/graph.js");
  const { post } = await import("/console/server/server.js");
  const graph = await post("/local/graph", { content });
  const entry = (path, state) => ({ path, kind: "step", state, seconds: 1, start_time: "2026-01-01T00:00:00Z" });
  window.states = (state, changed) => graph.boxes.map((each) => entry(each.id, changed[each.id] ?? state));
  function Test() {
    const [tasks, setTasks] = useState(states("PENDING", {}));
    window.show = setTasks;
    return html`<${Graph} graph=${graph} tasks=${tasks} />`;
  }
  const place = document.createElement("div");
  document.querySelector("main").append(place);
  render(html`<${Test} />`, place);
}"""

FRAMES = """async () => {
  const svg = document.querySelector(".graph > svg");
  const { left, top } = svg.getBoundingClientRect();
  const frame = () => new Promise(requestAnimationFrame);
  const times = [];
  let last = await frame();
  for (let n = 0; n < 60; n++) {
    const deltas = { deltaX: n % 20 < 10 ? 12 : -12, deltaY: n % 40 < 20 ? 20 : -20, ctrlKey: n % 3 === 0 };
    const at = { clientX: left + 300, clientY: top + 200, cancelable: true };
    svg.dispatchEvent(new WheelEvent("wheel", { ...deltas, ...at }));
    const now = await frame();
    times.push(now - last);
    last = now;
  }
  return times.sort((a, b) => a - b);
}"""

CHANGED = """async () => {
  const touched = new Set();
  const observer = new MutationObserver((all) => {
    for (const { target } of all) touched.add(target.nodeType === 1 ? target : target.parentElement);
  });
  observer.observe(document.querySelector(".graph > svg"),
    { subtree: true, childList: true, attributes: true, characterData: true });
  show(states("PENDING", { t7: "RUNNING" }));
  while (!document.querySelector(".graph .RUNNING")) await new Promise(requestAnimationFrame);
  const found = [...touched].map((each) => each.closest(".box")?.querySelector("[data-id]").dataset.id);
  observer.disconnect();
  return [...new Set(found)];
}"""


def test_300_steps_are_moved_in_frames_and_an_update_touches_only_its_box(browser: Browser, server: Server) -> None:
    names = [f"t{number}" for number in range(300)]
    tasks = {name: task(name, [f"t{(n - 1) // 2}"] if n else []) for n, name in enumerate(names)}
    with opened(browser, server, "#/schedules") as page:
        page.get_by_role("heading", level=1).wait_for()
        started = time.perf_counter()
        page.evaluate(MOUNT, json.dumps(document(tasks)))
        expect(page.locator(".graph .choice")).to_have_count(300)
        print(f"300 steps: shown after {1000 * (time.perf_counter() - started):.0f} ms")
        times = page.evaluate(FRAMES)
        print(f"frames: median {times[30]:.1f} ms, 95% {times[56]:.1f} ms, slowest {times[-1]:.1f} ms")
        assert page.evaluate(CHANGED) == ["t7"]
        assert spec_of(tasks, {}).root.dag is not None


def document(tasks: dict[str, Any]) -> dict[str, Any]:
    """Return a compiled file with these tasks."""
    return {
        "pipelineInfo": {"name": "many"},
        "schemaVersion": "2.1.0",
        "root": {"dag": {"tasks": tasks}},
        "components": {"comp-step": {"executorLabel": "exec-step"}},
        "deploymentSpec": {"executors": {"exec-step": {"container": {"image": "python:3.11", "command": ["true"]}}}},
    }


OUTSIDE = """() => [...document.querySelectorAll(".graph .choice")].filter((choice) => {
  const right = choice.querySelector(".face").getBoundingClientRect().right;
  const items = choice.parentElement.querySelector(":scope > foreignObject");
  const end = items ? items.getBoundingClientRect().left : right;
  return [...choice.querySelectorAll("text")].some((each) => each.getBoundingClientRect().right > end);
}).map((each) => each.getAttribute("aria-label"))"""


@pytest.mark.parametrize("width", [1280, 390])
def test_texts_stay_in_their_boxes_and_nothing_hinders_anybody(browser: Browser, server: Server, width: int) -> None:
    with opened(browser, server, "#/runs/whole?view=graph", width=width) as page:
        expect(box(page, "check")).to_have_count(1)
        assert page.evaluate(OUTSIDE) == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        found = problems_of(page)
        print(found)
        assert found == []
