"""Many promotions at once, from runs and over the API: one champion at any time, and no version is lost."""

import json
import subprocess
import sys
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.types import artifact_types
from google_cloud_pipeline_components.v1.model import ModelUploadOp
from kfp import dsl

from localvertex.store import registry
from localvertex.store.model_versions import ModelVersions
from vertex_testing.server import PARENT, Server, wait_until

pytestmark = pytest.mark.slow

NUM_RUNS, NUM_UPLOADS = 4, 25
"""Uploads of each run; as many promotions again come over the API."""


@dsl.pipeline(name="promote")
def promote(folder: str, items: list) -> None:
    imported = dsl.importer(artifact_uri=folder, artifact_class=artifact_types.UnmanagedContainerModel)
    with dsl.ParallelFor(items):
        ModelUploadOp(
            display_name="digits",
            unmanaged_container_model=imported.output,
            version_aliases=["champion", "default"],
            location="{{$.pipeline_google_cloud_location}}",
        ).set_caching_options(False)


def start_run(file: Path, work_dir: Path, folder: Path, number: int) -> "subprocess.Popen[str]":
    words = [sys.executable, "-m", "localvertex", "run", str(file), "--work-dir", str(work_dir)]
    words += ["--run-id", f"promote-{number}", "--no-cache", "--max-parallel", "8"]
    words += ["--parameter", f"folder={folder}", "--parameter", f"items={json.dumps([*range(NUM_UPLOADS)])}"]
    return subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


@pytest.mark.soak
def test_200_promotions_at_once_leave_one_champion_and_lose_no_version(
    start_server: Callable[..., Server], compile_pipeline: Any, tmp_path: Path
) -> None:
    files = tmp_path / "model"
    files.mkdir()
    (files / "weights").write_text("weights")
    server, file = start_server(), compile_pipeline(promote, tmp_path / "promote.json")
    first = registry.add(server.work_dir, {"display_name": "digits"}, aliases=["champion"])
    name, versions, has_ended = f"models/{first.model_id}", ModelVersions(first.folder.parent), threading.Event()
    model = {"displayName": "digits", "artifactUri": str(files), "versionAliases": ["champion", "default"]}

    def call(number: int) -> str | None:
        if number % 2:
            numbers = versions.numbers
            path = f"{name}@{numbers[number % len(numbers)]}:mergeVersionAliases"
            server.call("POST", path, {"versionAliases": ["champion", "default"]}).raise_for_status()
            return None
        answer = server.call("POST", "models:upload", {"parentModel": f"{PARENT}/{name}", "model": model})
        answer.raise_for_status()
        uploaded: str = answer.json()["response"]["modelVersionId"]
        return uploaded

    def watch() -> list[list[str]]:
        """Return the champions of each list that was read meanwhile."""
        seen = []
        while not has_ended.is_set():
            found = server.call("GET", f"{name}:listVersions?pageSize=1000").json()["models"]
            seen.append([each["versionId"] for each in found if "champion" in each.get("versionAliases", [])])
        return seen

    runs = [start_run(file, server.work_dir, files, number) for number in range(NUM_RUNS)]
    with ThreadPoolExecutor(9) as pool:
        watched = pool.submit(watch)
        try:
            wait_until(lambda: len(versions.numbers) > 1 or any(each.poll() is not None for each in runs))
            uploaded = [each for each in pool.map(call, range(NUM_RUNS * NUM_UPLOADS)) if each]
            outputs = [each.communicate()[0] for each in runs]
        finally:
            has_ended.set()
    assert [each.returncode for each in runs] == [0] * NUM_RUNS, "\n".join(outputs)
    num_versions = 1 + NUM_RUNS * NUM_UPLOADS + NUM_RUNS * NUM_UPLOADS // 2
    assert versions.numbers == [str(each) for each in range(1, num_versions + 1)]
    assert len({*uploaded}) == NUM_RUNS * NUM_UPLOADS // 2
    for number in versions.numbers[1:]:
        content = versions.content(number)
        assert (content["version"], content["display_name"]) == (int(number), "digits")
        assert (versions.folder / number / "model" / "weights").read_text() == "weights"
    assert versions.aliases.keys() == {"champion", "default"}
    assert versions.aliases["champion"] == versions.aliases["default"]
    assert {*map(len, watched.result())} == {1}
    assert [each for each in versions.folder.rglob(".*")] == []
