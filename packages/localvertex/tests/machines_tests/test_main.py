"""`python -m localvertex machines`: exit codes, output streams and messages."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from machines_tests.conftest import DATA, ROOT, Program

JOBS, PIPELINES, LEGACY = DATA / "jobs", DATA / "pipelines", DATA / "legacy"


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["check", PIPELINES / "planned.json"], 0),
        (["check", PIPELINES / "planned.json", "--strict"], 1),
        (["check", PIPELINES / "planned.json", "--strict", "--ignore", "no-pipeline-root,placeholder-image"], 0),
        (["check", PIPELINES / "wrapped.yaml"], 1),
        (["check", JOBS / "airflow_gpu_job.json", PIPELINES / "literal.json"], 1),
        (["check", JOBS / "airflow_gpu_job.json", "missing.json"], 2),
        (["check", JOBS / "airflow_gpu_job.json", "--region", "europe-wets4"], 2),
        (["check", JOBS / "airflow_gpu_job.json", "--ignore", "accelerator-cuont"], 2),
        (["check", LEGACY / "everything.yaml"], 2),
        (["check"], 2),
        (["check", "--list-rules"], 0),
        (["table"], 0),
        (["table", "--machine", "z9"], 2),
        (["table", "--accelerator", "A100"], 2),
        (["convert", LEGACY / "container_with_labels.yaml"], 0),
        (["convert", LEGACY / "distributed_gpus.yaml"], 1),
        (["convert", LEGACY / "misspelt.yaml"], 2),
        (["convert"], 2),
        (["convert", "--", "gcloud", "ai-platform", "jobs", "submit", "training", "j", "--config", "none.yaml"], 2),
        ([], 2),
        (["chekc"], 2),
        (["--help"], 0),
        (["check", "--help"], 0),
        (["table", "--help"], 0),
        (["convert", "--help"], 0),
    ],
)
def test_exit_codes(machines: Program, arguments: list[Any], code: int) -> None:
    done = machines(*arguments)
    assert done.returncode == code, done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr if code == 2 else done.stdout


def test_findings_are_readable(machines: Program) -> None:
    done = machines("check", PIPELINES / "literal.json")
    error, path, nearest, last = done.stdout.splitlines()[2:]
    message = "3 x NVIDIA_TESLA_V100 on n1-standard-8; this machine type supports 1, 2, 4 or 8 per replica"
    assert error == f"error: {message} [accelerator-count]"
    task = "root.dag.tasks.custom-training-job.inputs.parameters.worker_pool_specs.runtimeValue.constant[0]"
    assert path == f"    at {task}.machine_spec.accelerator_count"
    near = [("n1-standard-8", 4), ("n1-standard-8", 2), ("n1-highmem-8", 4)]
    offers = "; ".join(f"{machine} with {count} x NVIDIA_TESLA_V100" for machine, count in near)
    assert nearest == f"    nearest: {offers}"
    assert last == f"{PIPELINES / 'literal.json'}: compiled pipeline, 1 error, 1 warning"


def test_the_table_of_prediction_has_other_machines(machines: Program) -> None:
    tables = [
        {line.split()[0] for line in machines("table", *option).stdout.splitlines() if line}
        for option in ((), ("--prediction",))
    ]
    training, prediction = tables
    assert "n1-standard-2" in prediction - training
    assert "n1-standard-64" in training - prediction


def test_json_output(machines: Program) -> None:
    done = machines("check", "--format", "json", PIPELINES / "literal.json", "missing.json")
    first, second = json.loads(done.stdout)["files"]
    assert [finding["rule"] for finding in first["findings"]] == ["training-cached", "accelerator-count"]
    assert set(first["findings"][0]) == {"rule", "severity", "where", "message", "alternatives"}
    assert "no such file" in second["unreadable"]


def test_the_table_of_an_accelerator_has_its_machines_counts_and_regions(machines: Program) -> None:
    lines = [line.split() for line in machines("table", "--accelerator", "L4").stdout.splitlines()]
    assert ["g2-standard-24", "24", "96", "NVIDIA_L4", "2"] in lines
    assert ["europe-west4", "yes"] in [line[:2] for line in lines]


def test_standard_input(machines: Program) -> None:
    text = (JOBS / "l4_with_old_name.yaml").read_text("utf-8")
    assert "did you mean NVIDIA_L4?" in machines("check", "-", stdin=text).stdout
    done = machines("convert", "-", stdin=(LEGACY / "container_with_labels.yaml").read_text("utf-8"))
    assert yaml.safe_load(done.stdout)["labels"] == {"type": "predict", "owner": "ml"}


def test_convert_prints_only_the_job_on_stdout(machines: Program, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_bytes((LEGACY / "distributed_gpus.yaml").read_bytes())
    line = "gcloud ml-engine jobs submit training j --region us-central1 --config config.yaml -- --epochs 5"
    done = machines("convert", "--replace-retired", "--", *line.split())
    job = yaml.safe_load(done.stdout)
    assert job["display_name"] == "j"
    assert [pool["replica_count"] for pool in job["job_spec"]["worker_pool_specs"]] == [1, 9, 3]
    assert job["job_spec"]["worker_pool_specs"][1]["container_spec"]["args"] == ["--epochs", "5"]
    assert "&" not in done.stdout  # no anchors
    assert done.stderr.splitlines()[-1].startswith("converted; the job passes check")
    # The same without the -- before gcloud.
    again = machines("convert", "--replace-retired", *line.split())
    assert again.stdout == done.stdout


def test_convert_for_gcloud(machines: Program) -> None:
    done = machines("convert", "--gcloud", LEGACY / "distributed_gpus.yaml")
    spec = yaml.safe_load(done.stdout)
    assert spec["workerPoolSpecs"][0]["machineSpec"]["acceleratorType"] == "NVIDIA_TESLA_K80"
    assert "gcloud ai custom-jobs create --region=REGION --display-name=JOB_NAME" in done.stderr


def test_gcloud_refuses_an_unused_pool(machines: Program) -> None:
    done = machines("convert", "--gcloud", LEGACY / "everything.yaml")
    assert "decide    worker pools: gcloud refuses an unused pool {}" in done.stderr
    job = machines("convert", LEGACY / "everything.yaml").stdout
    (checked,) = json.loads(machines("check", "-", "--format", "json", stdin=job).stdout)["files"]
    rules = [finding["rule"] for finding in checked["findings"]]
    assert set(rules) == {"placeholder-image", "pool-gap", "spot-without-restart"}


def test_json_is_read_as_gcloud_reads_it(machines: Program, tmp_path: Path) -> None:
    """A comma after the last item is no JSON, but gcloud read the file as YAML."""
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"trainingInput": {"scaleTier": "BASIC", "region": "us-central1"}})[:-1] + ",}")
    assert yaml.safe_load(machines("convert", file).stdout)["display_name"] == "JOB_NAME"


def test_converted_jobs_pass_check(machines: Program) -> None:
    job = machines("convert", LEGACY / "container_with_labels.yaml").stdout
    done = machines("check", "-", stdin=job)
    assert (done.returncode, done.stdout) == (0, "-: custom job, 0 errors, 0 warnings\n")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "is empty"),
        (b"\x00\xff\xfe\x80 binary", "is not YAML"),
        (b"[" * 100_000, "is nested too deeply"),
        (b"- " * 100_000, "is nested too deeply"),
        (b"{" * 1000 + b"}" * 1000, ""),
        (b"a: &a [x]\nb: &b [*a,*a,*a,*a,*a,*a,*a,*a,*a]\n", "expected a compiled pipeline"),
        (
            b"a0: &a0 [x,x,x,x,x,x,x,x,x,x]\n"
            + b"".join(b"a%d: &a%d [%s]\n" % (n, n, b",".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 12)),
            "through its aliases",
        ),
        (b"&a [*a]", "through its aliases"),
        (b"3", "contains 3;"),
        (b"{}", "contains a mapping without keys"),
        (b"[]", "expected a compiled pipeline"),
        (b"key: [unclosed", "is not YAML"),
        (b"day: 2026-13-45", "is not YAML"),
        (b"? [a]\n: b", "is not YAML"),
        (b"a: !!python/object:os.system {}", "is not YAML"),
        (b"machine_spec: {machine_type: n1-standard-4}", "single worker pool"),
        (b"- replica_count: 1\n  replica_count: 2\n", "'replica_count' twice in one mapping, in lines 1 and 2"),
        (b"trainingInput:\n  scaleTier: BASIC\n  masterType: x\n  scaleTier: CUSTOM\n", "in lines 2 and 4; keep one"),
        (b'{machine_spec: 1, "machine_spec": 2}', "'machine_spec' twice"),
        (b"a: &a {x: 1}\nb: {<<: *a, y: 1, y: 2}", "'y' twice"),
        (b"kind: Workflow\napiVersion: argoproj.io/v1alpha1\n", "Kubernetes object"),
    ],
)
def test_unreadable_files_get_one_line(machines: Program, tmp_path: Path, content: bytes, message: str) -> None:
    (tmp_path / "job.yaml").write_bytes(content)
    done = machines("check", "job.yaml")
    assert done.returncode == 2
    assert done.stdout == ""
    assert message in done.stderr
    assert len(done.stderr.splitlines()) == 1, done.stderr


def test_convert_refuses_repeated_keys(machines: Program) -> None:
    config = "trainingInput:\n  scaleTier: BASIC\n  scaleTier: CUSTOM\n"
    done = machines("convert", "-", stdin=config)
    assert (done.returncode, done.stdout) == (2, "")
    assert "standard input has the key 'scaleTier' twice in one mapping, in lines 2 and 3" in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_folders_missing_files_and_broken_json(machines: Program, tmp_path: Path) -> None:
    (tmp_path / "broken.json").write_text('{"root": ')
    for name, message in (
        (".", "is a folder"),
        ("none.json", "no such file"),
        ("broken.json", "is not JSON: Expecting"),
    ):
        done = machines("check", name)
        assert (done.returncode, message in done.stderr, len(done.stderr.splitlines())) == (2, True, 1), done.stderr


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_without_permission(machines: Program, tmp_path: Path) -> None:
    (tmp_path / "secret.json").touch(mode=0o000)
    assert "permission denied" in machines("check", "secret.json").stderr


@pytest.mark.parametrize("command", [["table"], ["check", "--list-rules"], ["check", str(PIPELINES / "camel.json")]])
def test_a_reader_that_stops_early_sees_no_traceback(command: list[str]) -> None:
    """The program ends without a message when stdout is closed, as by `| head -1`."""
    read_end, write_end = os.pipe()
    os.close(read_end)
    done = subprocess.run(
        [sys.executable, "-u", "-m", "localvertex", "machines", *command],
        stdout=write_end,
        stderr=subprocess.PIPE,
        text=True,
        cwd=ROOT,
        timeout=300,
        check=False,
    )
    os.close(write_end)
    assert done.stderr == ""


def test_only_the_standard_library_is_imported() -> None:
    """JSON is checked without PyYAML or any other package."""
    code = (
        f"import sys, localvertex.machines.__main__ as a; a.main(['check', {str(PIPELINES / 'literal.json')!r}]); "
        "imported = {name.split('.')[0] for name in sys.modules} - set(sys.stdlib_module_names); "
        "print(imported - {'__main__', 'localvertex'}, file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.stderr == "set()\n"


def test_yaml_without_pyyaml_is_explained() -> None:
    file = str(PIPELINES / "wrapped.yaml")
    code = f"import localvertex.machines.__main__ as a; raise SystemExit(a.main(['check', {file!r}]))"
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert "PyYAML is not installed" in done.stderr
