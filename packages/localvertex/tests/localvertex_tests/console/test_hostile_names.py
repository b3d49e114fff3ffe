"""Twenty hostile names in every field, artifact, file and log line: every view shows them, and none becomes markup."""

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from localvertex_tests.console.hostile import NAMES, fill, with_names
from localvertex_tests.show.test_untrusted import hostile
from playwright.sync_api import Browser, Page

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server

pytestmark = [pytest.mark.slow, needs_chromium]

COUNT = """
const real = window.fetch;
window.__pending = 0;
window.fetch = (...given) => (window.__pending++, real(...given).finally(() => window.__pending--));
"""
"""Counts the requests that have no answer."""

EXPECTED = (
    r"Blocked script execution in 'about:srcdoc' .*"
    r"|Blocked script execution in '\S+/artifact/file\S*' .*"
    r"|Loading the image .* violates .*: \"img-src data:\". The action has been blocked."
    r"|Failed to load resource: .* 404 .* at \S+/(local|v1)/.*"
)
"""What the browser reports of pages that components wrote, and of names that are the address of a view."""

OPEN = """() => {
  for (const each of document.querySelectorAll("details:not([open])")) each.open = true;
  for (const each of document.querySelectorAll('[role=tab][aria-selected=false], [aria-expanded=false]'))
    if (!each.dataset.seen) { each.dataset.seen = "1"; each.click(); return true; }
  return false;
}"""
"""Unfolds everything and clicks the next tab."""

FOUND = """() => {
  const wrong = window.__xss ? ["a script ran"] : [];
  const local = /^(#|\\/(?!\\/)|blob:|data:image\\/png;base64,iVBOR)/;
  for (const each of document.querySelectorAll("*")) {
    const tag = each.tagName.toLowerCase();
    if (["base", "object", "embed", "math", "style", "template", "applet"].includes(tag)) wrong.push(tag);
    if (tag === "script" && !each.src.startsWith(`${location.origin}/console/`)) wrong.push(each.outerHTML);
    if (tag === "iframe" && each.getAttribute("sandbox") !== "") wrong.push(each.outerHTML);
    for (const { name, value } of each.attributes) {
      const isAddress = ["href", "src", "action", "formaction", "data", "srcdoc", "xlink:href"].includes(name);
      const isLink = tag === "a" && value.startsWith("https://") && each.rel === "noreferrer";
      if (name.startsWith("on") || (isAddress && !isLink && !local.test(value))) wrong.push(`${tag} ${name}=${value}`);
    }
  }
  return wrong;
}"""


@dataclass(frozen=True, kw_only=True)
class Filled:
    """A server with hostile names in all its records."""

    server: Server
    runs: list[str]
    file: str
    """A compiled pipeline with the names."""

    @property
    def views(self) -> Iterator[str]:
        """All views, with addresses that are hostile themselves."""
        yield from ("#/runs", "#/create", "#/schedules", "#/models")
        yield f"#/compare?runs={','.join(self.runs)}"
        for run in self.runs:
            yield f"#/runs/{run}"
            record = json.loads((self.server.work_dir / run / "run.json").read_text())
            yield from (
                f"#/runs/{run}/{quote(each['path'], safe='')}"
                for each in record["tasks"][: 9 if run == "hostile" else 2]
            )
        for each in self.server.call("GET", "models").json()["models"][::7]:
            yield f"#/models/{each['name'].rpartition('/')[2]}/1"
        for each in self.server.call("GET", "customJobs").json()["customJobs"][::7]:
            yield f"#/jobs/{each['name'].rpartition('/')[2]}"
        for name in NAMES[::5]:
            text = quote(name, safe="")
            yield from (f"#/{text}", f"#/runs/{text}", f"#/runs/hostile/{text}", f"#/models/{text}/{text}")
            yield from (f"#/jobs/{text}", f"#/compare?runs={text},{text}", f"#/create?run={text}&file={text}")


@pytest.fixture(scope="module")
def filled(
    tmp_path_factory: pytest.TempPathFactory,
    compile_pipeline: Callable[[Any, Path], Path],
    light_pipeline: dict[str, Any],
) -> Iterator[Filled]:
    """Start a server and fill it."""
    folder = tmp_path_factory.mktemp("hostile")
    compiled = json.loads(compile_pipeline(hostile, folder / "hostile.json").read_text())
    with Server(folder / "runs", "--allow-host-commands") as server:
        described = with_names(compiled)
        yield Filled(server=server, runs=fill(server, described, light_pipeline), file=json.dumps(described))


def settle(page: Page) -> None:
    """Wait until nothing is loading, for some frames in a row."""
    page.wait_for_function(
        """() => {
          const isQuiet = !window.__pending && document.querySelector("#app *") && !document.querySelector(".loading");
          window.__quiet = isQuiet ? (window.__quiet ?? 0) + 1 : 0;
          return window.__quiet > 3 && !(window.__quiet = 0);
        }"""
    )


def checked(page: Page, view: str) -> str:
    """Open all parts of a view, check that nothing in it is markup of a record, and return its text."""
    settle(page)
    for _ in range(30):
        if not page.evaluate(OPEN):
            break
        settle(page)
    assert page.evaluate(FOUND) == [], view
    assert page.get_by_text("This page cannot be shown").count() == 0, view
    for frame in page.frames[1:]:
        frame.wait_for_load_state()
        assert not frame.evaluate("window.__xss"), view
    return page.inner_text("body")


def assert_shown(text: str) -> None:
    """Check that the beginning of each name is there to be read, with escapes for what would hide or reorder it."""
    words = " ".join(text.split())
    names = [re.sub("[\x1b\u202a-\u202e\u2066-\u2069]", lambda each: f"\\u{ord(each[0]):04x}", name) for name in NAMES]
    assert [name for name in names if " ".join(name.split())[:40] not in words] == []
    assert not re.search("[\x1b\u202a-\u202e\u2066-\u2069]", text)


def test_no_name_becomes_markup_in_any_view(filled: Filled, browser: Browser) -> None:
    with opened(browser, filled.server, expected=EXPECTED) as page:
        page.add_init_script(COUNT)
        page.reload()
        shown = ""
        for view in filled.views:
            page.goto(f"{filled.server.url}/{view}")
            shown += checked(page, view)
        assert_shown(shown)


def test_no_name_in_a_file_becomes_markup_in_its_form(filled: Filled, browser: Browser) -> None:
    with opened(browser, filled.server, "#/create", expected=EXPECTED) as page:
        page.add_init_script(COUNT)
        page.reload()
        content = filled.file.encode()
        file = {"name": f"{NAMES[1]}.json".replace("/", ""), "mimeType": "application/json", "buffer": content}
        page.set_input_files("#pipeline-file", [file])
        # It is in a part that is folded, which the check opens.
        page.get_by_text(NAMES[2]).first.wait_for(state="attached")
        assert_shown(checked(page, "form"))
