"""One form, started in two ways: by the page's request, and by the command. They run the same."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser

from vertex_testing.browser import browser as browser, needs_chromium, opened
from vertex_testing.server import Server, wait_until

pytestmark = [pytest.mark.slow, needs_chromium]

COMMAND = """async ([overview, { parameters, ...settings }]) => {
  const { commandOf } = await import("/console/creating/command.js");
  return commandOf(overview, { parameters: new Map(Object.entries(parameters)), settings });
}"""

TEXTS = {
    "text": "@a 'b' \"c\" $HOME $(false) `false` \\n ü\n--work-dir x; # {{$.pipeline_root}}\x15\x1b[201~\t!1\u202e",
    "count": "-7",
    "rate": "1e-05",
    "is_on": "true",
    "items": '["a", 1, null, {"b": "\\"\\u00fc"}]',
    "options": '{"__proto__": {"x": 1.5}, "\'": [true]}',
}


@pytest.fixture(scope="module")
def compiled(compile_pipeline: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Compile a pipeline with a parameter of each type, which starts no process."""
    from kfp import dsl

    @dsl.pipeline(name="all-types")  # type: ignore[untyped-decorator]
    def all_types(
        text: str,
        count: int = 1,
        rate: float = 0.5,
        is_on: bool = False,
        items: list[Any] = [],  # noqa: B006
        options: dict[str, Any] = {},  # noqa: B006
    ) -> None:
        dsl.importer(artifact_uri="/tmp", artifact_class=dsl.Dataset, metadata={"x": text})

    path: Path = compile_pipeline(all_types, tmp_path_factory.mktemp("a folder") / "all types.json")
    return path


def record_of(work_dir: Path, known: set[str]) -> dict[str, Any]:
    """Return the record of the run that is not known yet, once it has ended."""

    def ended() -> dict[str, Any] | None:
        for path in work_dir.glob("*/run.json"):
            content: dict[str, Any] = json.loads(path.read_text())
            if path.parent.name not in known and content["end_time"]:
                known.add(path.parent.name)
                return content
        return None

    found: dict[str, Any] = wait_until(ended)
    return found


def test_the_command_runs_what_the_form_says(
    start_server: Callable[..., Server], compiled: Path, browser: Browser
) -> None:
    server, known = start_server(), set[str]()
    overview = {"content": compiled.read_text(), "name": compiled.name}
    form: dict[str, Any] = overview | {
        "parameters": TEXTS,
        "region": "europe-west4",
    }
    form |= {"use_cache": False, "fail_fast": True, "labels": {"team": "a"}}
    answer = server.request("POST", "/local/check", json=form | {"is_start": True}).json()
    assert answer["refusals"] == []
    path = f"/v1/{answer['location']}/pipelineJobs"
    assert server.request("POST", path, json=answer["request"]).ok
    expected = record_of(server.work_dir, known)
    assert expected["state"] == "SUCCEEDED"
    with opened(browser, server, "#/no/view") as page:
        command = page.evaluate(COMMAND, [server.request("POST", "/local/check", json=overview).json(), form])
    # A terminal carries out control characters of a text that is pasted.
    assert command.isprintable()
    environment = os.environ | {"PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"}
    words = ["bash", "-c", command]
    subprocess.run(words, check=True, cwd=compiled.parent, env=environment, capture_output=True, timeout=300)
    found = record_of(server.work_dir, known)
    assert found["state"] == "SUCCEEDED"
    assert found["parameters"] == expected["parameters"]
    assert found["region"] == expected["region"] == "europe-west4"


def test_a_run_is_created_again_with_its_values(start_server: Callable[..., Server], compiled: Path) -> None:
    server = start_server()
    words = [sys.executable, "-m", "localvertex", "run", str(compiled), "--work-dir", str(server.work_dir)]
    words += ["--parameter", "text=again", "--parameter", "items=[1]", "--parameter", "count=1"]
    words += ["--region", "europe-west4"]
    subprocess.run(words, check=True, capture_output=True)
    (run_id,) = [each.parent.name for each in server.work_dir.glob("*/run.json")]
    found = server.request("POST", "/local/check", json={"run": run_id}).json()
    assert {each["name"]: each["value"] for each in found["parameters"] if each["value"] is not None} == {
        "text": "again",
        "items": "[1]",
    }
    assert found["region"] == "europe-west4"
