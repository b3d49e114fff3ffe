"""Every view and tab of the console, the report and the page of `prove`: no finding of axe, nothing cut or covered.

At the widths of a desk and of a telephone: in light and dark, in forced colours, and with text of twice the size.
"""

import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from localvertex_tests.api.metadata.test_pipeline_runs import Api
from localvertex_tests.console.comparing.runs import Runs, metric
from localvertex_tests.console.jobs.training import TASK as TRAINING, Training, one_job
from localvertex_tests.console.models.test_view import add
from localvertex_tests.console.schedules.test_routes import create, run_now
from localvertex_tests.console.watch import pipelines
from localvertex_tests.console.watch.test_results import write_run
from localvertex_tests.prove.test_prove import TRAININGS
from localvertex_tests.show.test_page import whole
from localvertex_tests.support.axe import load_axe
from playwright.sync_api import Browser, Page, expect

from localvertex._base.compiled.load import load
from localvertex.credentials.secrets import Secrets
from localvertex.show import report
from vertex_testing.browser import browser as browser, needs_chromium, opened, opened_report
from vertex_testing.server import Server, wait_until

pytestmark = [pytest.mark.slow, pytest.mark.soak, needs_chromium]

WIDTHS = (1280, 390)
LOOKS: dict[str, dict[str, Any]] = {
    "light": {"color_scheme": "light", "forced_colors": "none"},
    "dark": {"color_scheme": "dark", "forced_colors": "none"},
    "forced colours": {"color_scheme": "dark", "forced_colors": "active"},
    "large text": {"color_scheme": "light", "forced_colors": "none"},
}

COMPARED = [f"epochs-{number}" for number in range(9)]

_LOOP = "exit-handler-1%2Ffor-loop-4"

VIEWS = {
    "runs": "#/runs",
    "no run matches": "#/runs?text=nothing",
    "a filter that cannot be read": "#/runs?text=epochs%3E",
    "a filter with an unknown name": "#/runs?text=epochz%3E3",
    "run, results": "#/runs/evaluated",
    "run, report of the evaluation": "#/runs/evaluated?view=report",
    "step, folded log": "#/runs/evaluated/exit-handler-1%2Fcondition-2%2Fevaluate",
    "experiments": "#/runs?list=experiments",
    "custom jobs": "#/runs?list=jobs",
    "custom job": "#/jobs/{job}",
    "run, failed, graph": "#/runs/whole?view=graph",
    "run, failed, steps": "#/runs/whole?view=steps",
    "step, failed": f"#/runs/whole/{_LOOP}%2F1%2Fcheck",
    "step, failed, values": f"#/runs/whole/{_LOOP}%2F1%2Fcheck?tab=values",
    "step, succeeded, values": f"#/runs/whole/{_LOOP}%2F0%2Fcheck?tab=values",
    "group": f"#/runs/whole/{_LOOP}",
    "step, not triggered": "#/runs/whole/exit-handler-1%2Fcondition-2%2Fcondition-3",
    "run, short": "#/runs/failing",
    "run, running": "#/runs/waiting?view=graph",
    "step, running": "#/runs/waiting/report",
    "step, unknown": "#/runs/waiting/unknown",
    "run, artifacts": "#/runs/watched?view=steps",
    "step, artifacts": "#/runs/watched/report?tab=values",
    "step, cached": "#/runs/again/for-loop-2%2F0%2Fdouble",
    "training": "#/runs/one",
    "training, log": "#/runs/one/{task}?tab=log",
    "training, curves": "#/runs/one/{task}?tab=curves",
    "training, replicas": "#/runs/one/{task}?tab=replicas",
    "training, values": "#/runs/one/{task}?tab=values",
    "run, missing": "#/runs/missing",
    "run, damaged": "#/runs/damaged",
    "compare, none": "#/compare",
    "compare 2": "#/compare?runs=epochs-0,epochs-1",
    "compare 9": "#/compare?runs={compared}&base=epochs-3",
    "create": "#/create",
    "create, form": "#/create?run=whole",
    "create, training": "#/create?run=one",
    "create, refused": "#/create?run=epochs-0",
    "schedules": "#/schedules",
    "schedule": "#/schedules/{schedule}",
    "new schedule": "#/schedules/new",
    "new schedule, form": "#/schedules/new?run=whole",
    "models": "#/models",
    "model": "#/models/flowers/2",
    "model, versions": "#/models/flowers/2?tab=versions",
    "not found": "#/nowhere",
}
"""The fragments of the console's views."""

DIALOGS = {
    "dialog, kill": (VIEWS["training, replicas"], "Kill workerpool0-0"),
    "dialog, preempt": (VIEWS["custom job"], "Preempt workerpool0-0"),
    "dialog, delete run": ("#/runs/whole", "Delete"),
    "dialog, note": ("#/runs/whole", "Name and note"),
    "dialog, aliases": (VIEWS["model"], "Edit aliases"),
    "dialog, delete version": (VIEWS["model"], "Delete version"),
    "dialog, delete schedule": (VIEWS["schedule"], "Delete: yearly"),
    "create, wrong": ("#/create?run=one", "Start run"),
    "new schedule, wrong": ("#/schedules/new?run=one", "Create schedule"),
}
"""What buttons open: a view and the name of its button."""

RULES = """async (look) => {
  const rules = axe.getRules().filter(({ tags }) => !tags.some((tag) => ["wcag2aaa", "deprecated"].includes(tag)));
  const enabled = Object.fromEntries(rules.map(({ ruleId }) => [ruleId, { enabled: true }]));
  // The browser chooses forced colours; axe reads those of the page.
  if (look === "forced colours") enabled["color-contrast"].enabled = false;
  const { violations } = await axe.run({ resultTypes: ["violations"], rules: enabled });
  // How long a step has been running is no part of its name, which would change each second.
  const isClock = ({ target }) => document.querySelector(target[0])?.querySelector("tspan[aria-hidden]");
  // What the frame of the graph clips covers nothing, but axe counts it with the targets beside the graph.
  const isIn = ({ target }) => document.querySelector(target[0])?.closest(".graph svg");
  const isBesideGraph = (node) =>
    !isIn(node) && node.any.every(({ relatedNodes }) => relatedNodes.length && relatedNodes.every(isIn));
  const passes = { "label-content-name-mismatch": isClock, "target-size": isBesideGraph };
  const found = violations
    .map(({ id, nodes }) => ({ id, nodes: nodes.filter((node) => !passes[id]?.(node)) }))
    .filter(({ nodes }) => nodes.length);
  return found.map(({ id, nodes }) => `${id}: ${nodes.slice(0, 3).map((each) => each.html).join(" | ")}`);
}"""

CUT = """() => {
  const found = [];
  const { scrollWidth, clientWidth } = document.documentElement;
  if (scrollWidth > clientWidth) found.push(`the page is ${scrollWidth} px wide`);
  const isHidden = (each) => !each.checkVisibility({ visibilityProperty: true }) || each.closest(".hidden, .skip");
  const root = document.querySelector("dialog[open]") ?? document.body;
  const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
  const texts = [];
  const boxes = (node) => {
    const range = document.createRange();
    range.selectNodeContents(node);
    return [...range.getClientRects()].filter((each) => each.width > 1 && each.height > 1);
  };
  while (walker.nextNode()) {
    const { currentNode: node } = walker;
    const parent = node.parentElement;
    if (!node.data.trim() || isHidden(parent) || parent.closest("option, script, style, .top")) continue;
    let seen = boxes(node);
    let isScrolled = false;
    for (let outer = parent; outer && outer !== document.body; outer = outer.parentElement) {
      const { overflowX, overflowY } = getComputedStyle(outer);
      const { left, right, top, bottom } = outer.getBoundingClientRect();
      isScrolled ||= [overflowX, overflowY].some((each) => ["auto", "scroll"].includes(each));
      const clips = [overflowX, overflowY].map((each) => ["hidden", "clip"].includes(each));
      if (!clips.includes(true) || outer.closest("svg") || isScrolled) continue;
      const isCut = (each) => (clips[0] && (each.right > right + 1 || each.left < left - 1)) ||
        (clips[1] && (each.bottom > bottom + 1 || each.top < top - 1));
      // The whole text is the title, or is on the page to which the row leads.
      const canBeRead = parent.closest("[title]") || parent.closest("tr")?.querySelector("a");
      if (seen.some(isCut) && !canBeRead) found.push(`cut: ${node.data.trim().slice(0, 60)}`);
    }
    // What scrolls is read by scrolling, and the graph is moved.
    const place = { parent, text: node.data.trim() };
    if (!isScrolled && !parent.closest(".graph svg")) texts.push(...seen.map((each) => ({ ...place, each })));
  }
  for (const [index, { text, each, parent }] of texts.entries())
    for (const other of texts.slice(index + 1)) {
      const wide = Math.min(each.right, other.each.right) - Math.max(each.left, other.each.left);
      const high = Math.min(each.bottom, other.each.bottom) - Math.max(each.top, other.each.top);
      if (wide > 2 && high > 5 && parent !== other.parent)
        found.push(`covered: ${text.slice(0, 40)} / ${other.text.slice(0, 40)}`);
    }
  return [...new Set(found)];
}"""
"""What is wider than the page, is cut without a title that has it, or is over another text."""

ENLARGE = """() => {
  const enlarge = ({ style, cssRules = [] }) => {
    for (const name of ["font-size", "line-height"]) {
      const [, number] = /^([\\d.]+)px$/.exec(style?.getPropertyValue(name) ?? "") ?? [];
      if (number) style.setProperty(name, `${2 * number}px`, style.getPropertyPriority(name));
    }
    [...cssRules].forEach(enlarge);
  };
  for (const each of document.querySelectorAll("svg text, svg tspan, svg")) {
    const { fontSize, lineHeight } = getComputedStyle(each);
    Object.assign(each.style, { fontSize, lineHeight });
  }
  [...document.styleSheets].forEach(enlarge);
}"""
"""Enlarge all text, and no space, as Firefox's zoom of text does: drawings keep theirs."""


@pytest.fixture(scope="module")
def names() -> dict[str, str]:
    """What the addresses of views contain that is known once the server runs."""
    return {"task": TRAINING, "compared": ",".join(COMPARED)}


@pytest.fixture(scope="module")
def server(
    tmp_path_factory: pytest.TempPathFactory,
    compile_pipeline: Any,
    light_pipeline: dict[str, Any],
    names: dict[str, str],
) -> Iterator[Server]:
    """A server with a run in each state, a training that runs, schedules, models and experiments."""
    folder = tmp_path_factory.mktemp("views")
    work_dir = folder / "runs"
    _write(work_dir)
    there, training = folder / "there", Training(folder)
    with Server(work_dir) as server:

        def start(pipeline: Any, run_id: str, **parameters: Any) -> None:
            spec = json.loads(compile_pipeline(pipeline, folder / f"{run_id}.json").read_text())
            body = {"displayName": f"{run_id} run", "pipelineSpec": spec}
            body["runtimeConfig"] = {"parameterValues": parameters}
            server.call("POST", f"pipelineJobs?pipelineJobId={run_id}", body).raise_for_status()

        def state(run_id: str) -> str:
            return str(json.loads((work_dir / run_id / "run.json").read_text())["state"])

        start(pipelines.watched, "waiting", there=str(there))
        start(whole, "whole")
        start(pipelines.failing, "failing", reason="no <b>data</b> in " + "/a/long/folder" * 20)
        wait_until(lambda: (work_dir / "waiting" / "report" / "log.txt").exists())
        start(pipelines.watched, "watched", there=str(work_dir))
        wait_until(lambda: state("watched") == "SUCCEEDED" and state("whole") == state("failing") == "FAILED")
        start(pipelines.watched, "again", there=str(work_dir))
        spec = json.loads(compile_pipeline(one_job, folder / "one.json").read_text())
        watch = training.start(server, spec)
        watch.trains(1)
        (folder / "alone").mkdir()
        job = Training(folder / "alone").start_alone(server)
        job.trains(1)
        names["job"] = job.number
        names["schedule"] = create(server, light_pipeline, parameters={"x": "z"}).rpartition("/")[2]
        run_now(server, names["schedule"]).raise_for_status()
        yield server


def _write(work_dir: Path) -> None:
    """Write what no process has to make: runs with curves and metrics, models, and runs of experiments."""
    runs = Runs(work_dir)
    for number, run_id in enumerate(COMPARED):
        loss = [2.0, 1.0 + number / 10, 0.5 - number / 50]
        values = {
            "epochs": 5 * (number // 3),
            "rate": 0.1 / (number + 1),
            "recipe": f"recipes/{'long-' * number}name.yaml",
        }
        metrics = [metric("accuracy", 0.995074 - number / 10000), metric("logLoss", loss[-1]), metric("note", "fine")]
        runs.add(run_id, job=runs.train(run_id, loss), parameters=values, metrics=metrics, uuid=str(number))
    write_run(work_dir, "evaluated")
    (work_dir / "damaged").mkdir()
    (work_dir / "damaged" / "run.json").write_text("{")
    for number in (1, 2):
        versions = add(work_dir, "flowers", uploaded_by=f"{number}/train", version_description="of the week")
        if number == 2:
            averages = dict.fromkeys(("accuracy", "precision", "recall", "f1Score"), 0.995074)
            metrics = {"confidenceMetrics": [{"confidenceThreshold": 0.0, "maxPredictions": 1, **averages}]}
            versions.evaluate("2", {"display_name": "weekly", "metrics": metrics})
    versions.change_shared({"display_name": "flowers", "description": "A model of flowers", "labels": {"team": "a"}})
    api = Api(work_dir)

    def context(name: str, title: str, **fields: Any) -> None:
        api.ask("default/contexts", "create", contextId=name, body={"schemaTitle": title, **fields})

    context("digits", "system.Experiment", displayName="Digits")
    logged = {"_state": "COMPLETE", "_params": {"rate": 0.5}, "_metrics": {"loss": 1.0}}
    context("digits-0", "system.ExperimentRun", displayName="try 0", metadata=logged)
    parent = "projects/local-project/locations/us-central1/metadataStores/default/contexts/digits-0"
    api.ask("default/contexts", "addChildren", "digits", {"childContexts": [parent]})


def _settle(page: Page) -> None:
    """Wait until a view is drawn and nothing is loaded any more."""
    expect(page.locator("h1, h2").first).to_be_visible()
    expect(page.locator(".loading")).to_have_count(0)


def _findings(page: Page, view: str) -> list[str]:
    """Return what is wrong in each look; the last one enlarges the text for good."""
    found = []
    load_axe(page)
    for look, media in LOOKS.items():
        page.emulate_media(reduced_motion="reduce", **media)
        if look == "large text":
            page.evaluate(ENLARGE)
        for each in [*page.evaluate(RULES, look), *page.evaluate(CUT)]:
            found.append(f"{view}, {page.viewport_size['width'] if page.viewport_size else 0} px, {look}: {each}")
    return found


def _show(page: Page, server: Server, fragment: str, names: dict[str, str]) -> None:
    page.goto("about:blank")
    page.goto(f"{server.url}/{fragment.format(**names)}")
    _settle(page)


@pytest.mark.parametrize("width", WIDTHS)
def test_no_view_has_a_finding(browser: Browser, server: Server, names: dict[str, str], width: int) -> None:
    found = []
    with opened(browser, server, width=width, expected="status of (404|500)") as page:
        for view, fragment in VIEWS.items():
            _show(page, server, fragment, names)
            found += _findings(page, view)
    assert "\n".join(found) == ""


@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_that_a_button_opens_has_a_finding(
    browser: Browser, server: Server, names: dict[str, str], width: int
) -> None:
    found = []
    with opened(browser, server, width=width) as page:
        for view, (fragment, button) in DIALOGS.items():
            _show(page, server, fragment, names)
            if "wrong" in view:
                page.get_by_label(re.compile("^(pools|Cron)")).first.fill("[")
            page.get_by_role("button", name=button).click()
            expect(page.locator("dialog, [aria-invalid], .error").first).to_be_visible()
            found += _findings(page, view)
        _show(page, server, VIEWS["model, versions"], names)
        for each in page.get_by_role("checkbox").all():
            each.check()
        expect(page.get_by_role("heading", name="What differs")).to_be_visible()
        found += _findings(page, "versions compared")
        if width < 800:
            _show(page, server, "#/runs", names)
            page.get_by_role("button", name="Menu").click()
            found += _findings(page, "menu")
    assert "\n".join(found) == ""


@pytest.mark.parametrize("width", WIDTHS)
def test_no_file_has_a_finding(browser: Browser, server: Server, files: dict[str, Path], width: int) -> None:
    found = []
    for view, file in files.items():
        with opened_report(browser, file, width=width, expected="Blocked script|Content Security Policy") as page:
            _settle(page)
            found += _findings(page, view)
    assert "\n".join(found) == ""


@pytest.fixture(scope="module")
def files(server: Server, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The report of a failed run and of a trained one, and the page of a proof."""
    folder = tmp_path_factory.mktemp("files")
    trained = server.work_dir / COMPARED[0]
    content = json.loads((trained / "run.json").read_text())
    pipeline = load(server.work_dir / "whole" / "pipeline.json").pipeline
    report.write(trained, content, pipeline, Secrets().remove)
    words = [sys.executable, "-m", "localvertex", "prove", "--fault", "killed-in-the-middle", "--"]
    words += [sys.executable, str(TRAININGS / "wrong" / "schedule.py")]
    done = subprocess.run(words, cwd=folder, capture_output=True, text=True, timeout=300)
    (page,) = re.findall(r"^curves: (.*)$", done.stdout, re.M)
    failed = server.work_dir / "whole" / "run.html"
    return {"report, failed": failed, "report, trained": trained / "run.html", "prove": folder / page}
