"""`gsutil` and `gcloud storage` of steps: cp, ls and rsync of local buckets, and one sentence for all else."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from kfp import dsl

from localvertex.processes import bucket_program
from vertex_testing.runs import STEP, Execute, FindTask

Call = Callable[[str], subprocess.CompletedProcess[str]]

COMMANDS = """
set -e
gsutil -m cp gs://shop/in/a.csv copied.csv
gcloud storage cp copied.csv gs://shop/out/b.csv
mkdir -p made/deep && echo c > made/c && echo d > made/deep/d
gsutil -m -q rsync -r made gs://shop/synced
gcloud storage ls gs://shop/synced/
"""


@dsl.component(**STEP)
def transfer(commands: str) -> str:
    import subprocess

    return subprocess.run(["sh", "-c", commands], check=True, capture_output=True, text=True).stdout


@dsl.container_component
def transfer_in_image(commands: str, out: dsl.OutputPath(str)) -> dsl.ContainerSpec:
    script = 'eval "$0" > "$1"'
    return dsl.ContainerSpec(image="google/cloud-sdk:slim", command=["sh", "-ec", script], args=[commands, out])


@dsl.container_component
def copy(source: str, target: str) -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="google/cloud-sdk:slim", command=["gsutil", "cp", source, target])


@dsl.pipeline(name="transfers")
def transfers(commands: str, source: str, target: str) -> None:
    first = transfer(commands=commands)
    second = transfer_in_image(commands=commands).after(first)
    copy(source=source, target=target).after(second)


@pytest.fixture
def buckets(tmp_path: Path) -> Path:
    """The folders of buckets, one of which has a file."""
    (tmp_path / "buckets" / "shop" / "in").mkdir(parents=True)
    (tmp_path / "buckets" / "shop" / "in" / "a.csv").write_text("a,b\n")
    return tmp_path / "buckets"


@pytest.fixture
def call(buckets: Path, tmp_path: Path) -> Call:
    """Run a line of a step, with no other program of its name on PATH."""
    (tmp_path / "work").mkdir()

    def run(line: str, **more: str) -> subprocess.CompletedProcess[str]:
        env = {"PATH": "/nowhere", "LOCALVERTEX_GCS_ROOT": str(buckets), "BOTO_CONFIG": os.devnull} | more
        words = [sys.executable, "-I", bucket_program.__file__, *line.split()]
        return subprocess.run(words, cwd=tmp_path / "work", env=env, capture_output=True, text=True)

    return run


@pytest.mark.slow
def test_steps_and_commands_copy_list_and_synchronise(execute: Execute, task: FindTask, buckets: Path) -> None:
    inputs = {"commands": COMMANDS, "source": "gs://shop/in/a.csv", "target": "gs://shop/last.csv"}
    record = execute(transfers, inputs, gcs_root=buckets)
    assert record["state"] == "SUCCEEDED", record["error"]
    for name, output in (("transfer", "Output"), ("transfer-in-image", "out")):
        assert task(record, name)["outputs"]["parameters"][output] == "gs://shop/synced/c\ngs://shop/synced/deep/\n"
    found = sorted(str(each.relative_to(buckets)) for each in buckets.rglob("*") if each.is_file())
    assert found == ["shop/in/a.csv", "shop/last.csv", "shop/out/b.csv", "shop/synced/c", "shop/synced/deep/d"]


def test_files_and_folders_go_where_gsutil_puts_them(call: Call, buckets: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    (work / "model" / "deep").mkdir(parents=True)
    (work / "model" / "deep" / "x").write_text("1")
    for line in (
        "gsutil cp -r model gs://shop",
        "gsutil -m cp -r model gs://shop/new",
        "gsutil cp -r model gs://shop/new",
        "gcloud storage cp --recursive gs://shop/new here",
        "gsutil cp gs://shop/in/*.csv .",
        "gsutil cp gs://shop/in/a.csv gs://shop/b/c/",
    ):
        assert call(line).returncode == 0, line
    assert (buckets / "shop" / "model" / "deep" / "x").is_file()
    assert (buckets / "shop" / "new" / "deep" / "x").is_file()
    assert (buckets / "shop" / "new" / "model" / "deep" / "x").is_file()
    assert (work / "here" / "deep" / "x").is_file()
    assert (work / "a.csv").read_text() == "a,b\n"
    assert (buckets / "shop" / "b" / "c" / "a.csv").is_file()
    assert call("gsutil cp gs://shop/in/a.csv -").stdout == "a,b\n"
    assert call("gsutil ls").stdout == "gs://shop/\n"
    (work / "a.csv").write_text("mine")
    assert call("gsutil cp -n gs://shop/in/a.csv a.csv").returncode == 0
    assert (work / "a.csv").read_text() == "mine"
    assert call("gsutil rsync -d gs://shop/in gs://shop/b/c").returncode == 0
    assert call("gsutil rsync -r -d model gs://shop/new").returncode == 0
    assert not (buckets / "shop" / "new" / "model").is_file()
    assert not (buckets / "shop" / "new" / "model" / "deep" / "x").exists()


@pytest.mark.parametrize(
    "line",
    [
        "gsutil cp gs://shop/none .",
        "gsutil cp gs://shop/in .",
        "gsutil cp gs://shop/../../secret .",
        "gsutil cp a gs://other/x",
        "gsutil ls gs://shop/none*",
        "gsutil rsync -x pattern gs://shop/in .",
        "gsutil rsync -d gs://shop/none gs://shop/in",
        "gsutil rm gs://shop/in/a.csv",
        "gcloud storage buckets create gs://new",
        "gcloud ai models list",
        "gsutil",
    ],
)
def test_what_is_not_served_fails_in_one_line(call: Call, buckets: Path, line: str) -> None:
    (buckets.parent / "secret").write_text("secret")
    done = call(line)
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (1, 1, ""), done
    assert done.stderr.startswith(f"error: {line.split()[0]}: ")
    assert not (buckets.parent / "work" / "secret").exists()
    assert (buckets / "shop" / "in" / "a.csv").exists()


def test_a_link_does_not_lead_out_of_its_bucket(call: Call, buckets: Path) -> None:
    (buckets.parent / "secret").write_text("secret")
    (buckets / "shop" / "in" / "link").symlink_to(buckets.parent / "secret")
    for line in ("gsutil cp gs://shop/in/link .", "gsutil cp gs://shop/in/l* .", "gsutil cp -r gs://shop/in ."):
        assert call(line).returncode == 1, line
    assert "secret" not in [each.read_text() for each in (buckets.parent / "work").rglob("*") if each.is_file()]


def test_the_real_program_does_all_else(call: Call, tmp_path: Path) -> None:
    real = tmp_path / "bin" / "gsutil"
    real.parent.mkdir()
    real.write_text('#!/bin/sh\necho real "$@"\n')
    real.chmod(0o755)
    path = f"{real.parent}{os.pathsep}/bin{os.pathsep}/usr/bin"
    assert call("gsutil rm gs://shop/x", PATH=path).stdout == "real rm gs://shop/x\n"
    assert call("gsutil cp gs://public-data/x .", PATH=path).stdout == "real cp gs://public-data/x .\n"
    assert call("gsutil ls gs://shop", PATH=path, BOTO_CONFIG="/own").stdout == "real ls gs://shop\n"
