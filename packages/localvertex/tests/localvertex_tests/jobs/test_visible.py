"""What a replica sees of the emulated machine, variables and files, is in the table of facts."""

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from localvertex import jobs
from localvertex.containers import gpus
from localvertex.jobs.tuning.job import METRIC_FILE
from localvertex.values.buckets import Buckets
from localvertex.values.facts import VARIABLES, facts

SHOW = """
import json, os, sys
seen = {"env": dict(os.environ), "files": os.listdir(), "root": os.listdir("/")}
with open(f"{sys.argv[1]}/out/seen.json", "w") as file:
    json.dump(seen, file)
"""
KNOWN = {fact.name for fact in facts().values() if fact.group in VARIABLES}
FILES = {fact.name for fact in facts().values() if fact.group == "file"}


@pytest.fixture
def workspace(tmp_path: Path) -> jobs.Workspace:
    """Folders with one for buckets, which the sandbox shows as /gcs."""
    (tmp_path / "buckets").mkdir()
    folders = {"folder": tmp_path / "runs" / "job", "private_dir": tmp_path / "runs" / "private"}
    return jobs.Workspace(**folders, project="my-project", buckets=tmp_path / "buckets")


def unknown_variables(env: dict[str, str]) -> set[str]:
    """Return the variables that do not come unchanged from this process, and that the table lacks."""
    return {name for name, text in env.items() if os.environ.get(name) != text} - KNOWN


@pytest.mark.parametrize("image", ["gcr.io/x/y:1", "us-docker.pkg.dev/vertex-ai/training/pytorch-gpu.2-4.py310:latest"])
def test_a_replica_sees_only_variables_and_files_of_the_table(
    message: Callable[..., dict[str, Any]], run: Callable[..., jobs.Outcome], tmp_path: Path, image: str
) -> None:
    job = message((SHOW, 1), ("import time; time.sleep(60)", 1))
    for pool in job["job_spec"]["worker_pool_specs"]:
        pool["container_spec"]["image_uri"] = image
    assert run(job).state is jobs.JobState.SUCCEEDED
    seen = json.loads((tmp_path / "out" / "seen.json").read_text())
    assert unknown_variables(seen["env"]) == set()
    assert {"CLUSTER_SPEC", "TF_CONFIG", "GCE_METADATA_HOST"} <= set(seen["env"])
    assert ("RANK" in seen["env"]) == ("pytorch" in image)
    # The log of the job comes after the first end of a replica; the next one sees it.
    files = {*seen["files"], *os.listdir(tmp_path / "runs" / "job")}
    assert "log.txt" in files
    assert {re.sub("workerpool[01]-0", "workerpool", name) for name in files} <= FILES


def test_a_replica_in_the_sandbox_sees_no_other_files_and_variables(
    message: Callable[..., dict[str, Any]], run: Callable[..., jobs.Outcome], tmp_path: Path
) -> None:
    job = message(("", 1))
    (pool,) = job["job_spec"]["worker_pool_specs"]
    pool["container_spec"]["command"] = ["sh", "-c", "ls / > root; env -0 > env"]
    job["job_spec"]["base_output_directory"]["output_uri_prefix"] = str(tmp_path / "runs" / "out")
    outcome = run(job)
    assert outcome.state is jobs.JobState.SUCCEEDED, outcome.error
    folder = tmp_path / "runs" / "job"
    assert {*(folder / "root").read_text().split()} - {*os.listdir("/")} == {"gcs"}
    assert "/gcs" in FILES
    seen = dict(each.split("=", 1) for each in (folder / "env").read_text().split("\0") if each)
    assert unknown_variables(seen) - {"PWD", "SHLVL", "OLDPWD", "_"} == set()


def test_what_only_some_replicas_see_is_in_the_table(tmp_path: Path) -> None:
    assert {*Buckets(root=tmp_path).variables, gpus.VARIABLE} <= KNOWN
    assert METRIC_FILE in FILES


def test_a_variable_that_the_table_lacks_is_found() -> None:
    assert unknown_variables({**os.environ, "CLUSTER_SPEC": "{}", "NEW_VARIABLE": "1"}) == {"NEW_VARIABLE"}
