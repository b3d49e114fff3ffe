"""--gcs-root: buckets are folders of this machine, and no address leads out of them."""

import json
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl

import localvertex
from localvertex import jobs
from localvertex.containers.options import ContainerOptions
from localvertex.processes.processes import Processes
from localvertex.values.buckets import OutsideBucket
from vertex_testing.runs import STEP, Command, Compile, Execute, FindTask
from vertex_testing.server import Server, wait_until


@dsl.component(**STEP)
def read(folder: str, options: list, data: dsl.Input[dsl.Dataset], model: dsl.Output[dsl.Model]) -> str:
    """Return what the step sees; no text in this source is an address: gs://source/code."""
    import json
    import os
    from pathlib import Path

    Path(model.path).write_text("trained on " + Path(data.path).read_text())
    seen = {"folder": folder, "options": options, "uri": data.uri, "path": data.path, "model": model.uri}
    seen["root"] = os.environ["LOCALVERTEX_GCS_ROOT"]
    return json.dumps({**seen, "text": Path(folder, "a.txt").read_text()})


@dsl.component(**STEP)
def use(model: dsl.Input[dsl.Model], copied: dsl.Output[dsl.Dataset], mount: str) -> str:
    from pathlib import Path

    copied.custom_path = mount
    return model.uri + " " + Path(model.path).read_text()


@dsl.container_component
def shell(data: dsl.Input[dsl.Dataset], text: dsl.OutputPath(str)) -> dsl.ContainerSpec:  # type: ignore[valid-type]
    script = 'cat "$0" "$1"; printf "%s %s %s" "$0" "$2" "$(cat "$1")" > "$3"'
    return dsl.ContainerSpec(
        image="any", command=["sh", "-c", script, "gs://data/folder/a.txt"], args=[data.path, data.uri, text]
    )


@dsl.pipeline(name="buckets")
def pipeline(source: str = "gs://data/folder") -> None:
    imported = dsl.importer(artifact_uri="gs://data/folder/b.txt", artifact_class=dsl.Dataset).output
    options = ["--in=gs://data/folder", "see gs://data", {"of": "gs://data/x,gs://data/y"}]
    first = read(folder=source, options=options, data=imported)
    use(model=first.outputs["model"], mount="/gcs/data/folder/b.txt")
    shell(data=imported)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """Return a folder with the bucket `data`."""
    root = tmp_path / "buckets"
    (root / "data" / "folder").mkdir(parents=True)
    (root / "data" / "folder" / "a.txt").write_text("A")
    (root / "data" / "folder" / "b.txt").write_text("B")
    (tmp_path / "secret").write_text("outside")
    return root


def test_parameters_importers_and_paths_are_those_of_the_folder(execute: Execute, task: FindTask, root: Path) -> None:
    record = execute(pipeline, gcs_root=root)
    assert record["state"] == "SUCCEEDED", record["error"]
    outputs = task(record, "read")["outputs"]
    seen = json.loads(outputs["parameters"]["Output"])
    data = root / "data"
    assert seen["folder"] == str(data / "folder")
    assert seen["options"] == [f"--in={data}/folder", "see gs://data", {"of": f"{data}/x,{data}/y"}]
    assert (seen["uri"], seen["path"]) == ("gs://data/folder/b.txt", str(data / "folder" / "b.txt"))
    assert seen["root"] == str(root)
    assert (seen["text"], seen["model"]) == ("A", outputs["artifacts"]["model"][0]["uri"])
    assert Path(seen["model"]).read_text() == "trained on B"
    assert task(record, "importer")["outputs"]["artifacts"]["artifact"][0]["uri"] == "gs://data/folder/b.txt"
    assert record["parameters"]["source"] == "gs://data/folder", "what the user gave is what the record shows"
    words = task(record, "shell")["outputs"]["parameters"]["text"]
    assert words == f"{data}/folder/a.txt gs://data/folder/b.txt B"
    copied = task(record, "use")["outputs"]["artifacts"]["copied"][0]["uri"]
    assert Path(copied).read_text() == "B"
    assert (data / "folder" / "b.txt").read_text() == "B", "the user's file is copied, not moved"


SCRIPT = """\
n=folder; cat /gcs/data/folder/a.txt "/gcs/data/folder/b.txt" </gcs/data/$n/a.txt > "${OUT:-$0}"
cat /gcs/data/$n/b.txt>>/gcs/data/out.txt; echo not/gcs/data >> "${OUT:-$0}"
"""


@dsl.container_component
def script(text: dsl.OutputPath(str)) -> dsl.ContainerSpec:  # type: ignore[valid-type]
    return dsl.ContainerSpec(image="any", command=["sh", "-euc", SCRIPT], args=[text])


@dsl.pipeline(name="scripts")
def scripts(out: str) -> None:
    from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp

    first = script()
    env = [{"name": "OUT", "value": out}]
    container = {"image_uri": "any", "command": ["bash", "-c"], "args": [SCRIPT], "env": env}
    CustomTrainingJobOp(
        display_name="script",
        worker_pool_specs=[
            {"container_spec": container, "machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1}
        ],
    ).after(first)


@pytest.mark.parametrize(
    "way",
    [
        {"containers": ContainerOptions(allow_host_commands=True)},
        {"command_prefixes": {"any": ("env",)}},
    ],
)
def test_a_script_of_an_image_finds_its_buckets_outside_the_sandbox(
    execute: Execute, task: FindTask, root: Path, way: dict[str, Any]
) -> None:
    record = execute(scripts, {"out": str(root / "data" / "job.txt")}, gcs_root=root, **way)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "script")["outputs"]["parameters"]["text"] == "ABnot/gcs/data\n"
    assert (root / "data" / "job.txt").read_text() == "ABnot/gcs/data\n"
    assert (root / "data" / "out.txt").read_text() == "BB"


def test_a_step_is_found_in_the_cache_only_with_the_same_buckets(
    execute: Execute, task: FindTask, root: Path, tmp_path: Path
) -> None:
    @dsl.component(**STEP)
    def first_line(path: str) -> str:
        with open(path) as file:
            return file.read()

    @dsl.pipeline(name="cached")
    def cached() -> None:
        first_line(path="gs://data/folder/a.txt")

    other = tmp_path / "other" / "data" / "folder"
    other.mkdir(parents=True)
    (other / "a.txt").write_text("other")
    found = [task(execute(cached, gcs_root=each), "first-line") for each in (root, root, tmp_path / "other")]
    assert [each["state"] for each in found] == ["SUCCEEDED", "SKIPPED", "SUCCEEDED"]
    assert [each["outputs"]["parameters"]["Output"] for each in found] == ["A", "A", "other"]


@pytest.fixture
def job_file(compiled: Compile, tmp_path: Path) -> Path:
    """Return a PipelineJob whose outputs go to the bucket `data`."""
    spec = json.loads(compiled(pipeline).read_text())
    job = {"pipelineSpec": spec, "runtimeConfig": {"gcsOutputDirectory": "gs://data/out/"}}
    (tmp_path / "job.json").write_text(json.dumps(job))
    return tmp_path / "job.json"


def test_outputs_of_a_job_file_go_to_its_bucket(
    job_file: Path, execute: Execute, task: FindTask, root: Path, work_dir: Path
) -> None:
    record = execute(job_file, gcs_root=root, run_id="r")
    assert record["state"] == "SUCCEEDED", record["error"]
    assert not [text for text in record["warnings"] if "gcsOutputDirectory" in text]
    uri = task(record, "read")["outputs"]["artifacts"]["model"][0]["uri"]
    assert uri.startswith("gs://data/out/r/read_")
    assert (root / uri.removeprefix("gs://")).read_text() == "trained on B"
    assert task(record, "use")["outputs"]["parameters"]["Output"] == f"{uri} trained on B"
    without = execute(job_file, gcs_root=None, run_id="u", with_credentials=True)
    assert [text for text in without["warnings"] if "--gcs-root DIR keeps them" in text]


def test_a_resumed_run_uses_the_buckets_that_it_was_started_with(execute: Execute, root: Path, work_dir: Path) -> None:
    (root / "data" / "folder" / "a.txt").unlink()
    assert execute(pipeline, gcs_root=root, run_id="r")["state"] == "FAILED"
    (root / "data" / "folder" / "a.txt").write_text("A")
    assert localvertex.resume("r", options=localvertex.Options(work_dir=work_dir))["state"] == "SUCCEEDED"


@dsl.component(**STEP)
def write(data: dsl.Output[dsl.Dataset]) -> None:
    with open(data.path, "w") as file:
        file.write("written")


@dsl.pipeline(name="writes")
def writes() -> None:
    write()


def test_a_cached_artifact_in_a_bucket_counts_while_its_file_exists(
    compiled: Compile, tmp_path: Path, execute: Execute, root: Path
) -> None:
    spec = json.loads(compiled(writes).read_text())
    job = {"pipelineSpec": spec, "runtimeConfig": {"gcsOutputDirectory": "gs://data/out"}}
    file = tmp_path / "writes.json"
    file.write_text(json.dumps(job))

    def run(used: Path | None) -> tuple[str, Path]:
        (step,) = execute(file, gcs_root=used)["tasks"]
        uri = step["outputs"]["artifacts"]["data"][0]["uri"]
        path = root / uri.removeprefix("gs://") if used else Path(uri)
        assert path.read_text() == "written"
        return step["state"], path

    state, path = run(root)
    states = [state, run(root)[0], run(None)[0]]
    path.unlink()
    states.append(run(root)[0])
    assert states == ["SUCCEEDED", "SKIPPED", "SUCCEEDED", "SUCCEEDED"]


@pytest.mark.parametrize(
    "address",
    ["gs://data/../../secret", "/gcs/data/../../secret", "--in=gs://../secret", "gs:///secret", "gs://", "gs://A b/x"],
)
def test_no_address_leads_out_of_its_bucket(
    compiled: Compile, command: Command, root: Path, tmp_path: Path, address: str
) -> None:
    compiled(pipeline)
    done = command("run", "pipeline.json", "--gcs-root", root, "--parameter", f"source={address}")
    text = "'A' is not the name of a bucket; expected 3 to 63" if "A b" in address else "points outside its bucket"
    assert (done.returncode, text in done.stderr) == (2, True), done.stderr
    assert not (tmp_path / "runs").exists()


def test_an_address_that_a_step_makes_does_not_lead_out_either(execute: Execute, root: Path, task: FindTask) -> None:
    @dsl.component(**STEP)
    def make() -> str:
        return "gs://data/../../secret"

    @dsl.component(**STEP)
    def take(path: str) -> str:
        with open(path) as file:
            return file.read()

    @dsl.pipeline(name="makes")
    def makes() -> None:
        take(path=make().output)

    record = execute(makes, gcs_root=root)
    assert (record["state"], record["failed_task"]) == ("FAILED", "take")
    assert "points outside its bucket" in record["error"]


@pytest.mark.parametrize(
    ("source", "named"),
    [("gs://other/x", "there is no folder"), ("/tmp", "")],
)
def test_a_bucket_without_a_folder_is_named(
    compiled: Compile, command: Command, root: Path, source: str, named: str
) -> None:
    compiled(pipeline)
    done = command("run", "pipeline.json", "--gcs-root", root, "--parameter", f"source={source}")
    assert (done.returncode == 2, named in done.stderr) == (bool(named), True)


def test_without_the_option_importers_and_commands_are_refused_too(compiled: Compile, command: Command) -> None:
    compiled(pipeline)
    done = command("run", "pipeline.json")
    assert done.returncode == 2
    for where in ("parameter source", "tasks.read.inputs.parameters.options", "exec-importer.importer", "exec-shell"):
        (line,) = [line for line in done.stderr.splitlines() if where in line and "gs://data" in line][:1]
        assert "--gcs-root DIR" in line
        assert "--with-credentials" in line
    missing = command("run", "pipeline.json", "--gcs-root", "not-there")
    assert (missing.returncode, "expected an existing folder" in missing.stderr) == (2, True)


@pytest.fixture
def link(root: Path, tmp_path: Path) -> Path:
    """Return the user's own link out of a bucket, to a folder with a file."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_text("outside")
    (root / "data" / "a link").symlink_to(tmp_path / "outside")
    (root / "linked").symlink_to(tmp_path / "outside")
    return root / "data" / "a link"


LEADS_OUT = "is a link out of its bucket"


@pytest.mark.parametrize("address", ["gs://data/a link/x", "/gcs/data/a link", "--in=gs://data/a link", "gs://linked"])
def test_no_link_is_followed_out_of_its_bucket(compiled: Compile, command: Command, link: Path, address: str) -> None:
    compiled(pipeline)
    done = command("run", "pipeline.json", "--gcs-root", link.parents[1], "--parameter", f"source={address}")
    assert (done.returncode, LEADS_OUT in done.stderr) == (2, True), done.stderr


def test_no_link_is_followed_to_the_outputs_of_a_run(job_file: Path, command: Command, link: Path) -> None:
    job = json.loads(job_file.read_text())
    job_file.write_text(json.dumps(job | {"runtimeConfig": {"gcsOutputDirectory": "gs://data/a link/out"}}))
    done = command("run", job_file, "--gcs-root", link.parents[1])
    assert (done.returncode, LEADS_OUT in done.stderr) == (2, True), done.stderr
    assert [each.name for each in link.iterdir()] == ["a.txt"]


@dsl.component(**STEP)
def name_artifact(uri: str, data: dsl.Output[dsl.Dataset]) -> None:
    data.uri = "gs:" + uri


@dsl.component(**STEP)
def read_artifact(data: dsl.Input[dsl.Dataset]) -> str:
    with open(data.path) as file:
        return file.read()


@dsl.component(**STEP)
def name_place(uri: str) -> str:
    return "gs:" + uri


@dsl.pipeline(name="named")
def reads_named_artifact(uri: str) -> None:
    read_artifact(data=name_artifact(uri=uri).outputs["data"])


@dsl.pipeline(name="imported")
def imports_named(uri: str) -> None:
    dsl.importer(artifact_uri=name_place(uri=uri).output, artifact_class=dsl.Dataset)


@pytest.mark.parametrize("uri", ["//data/a link/a.txt", "//data/../../secret"])
@pytest.mark.parametrize("named", [reads_named_artifact, imports_named])
def test_an_address_that_a_step_names_is_not_followed_out_either(
    execute: Execute, link: Path, named: Any, uri: str
) -> None:
    record = execute(named, {"uri": uri}, gcs_root=link.parents[1])
    assert record["state"] == "FAILED"
    assert LEADS_OUT in record["error"] or "points outside its bucket" in record["error"]


SHOW = "import os, sys; open(os.environ['AIP_MODEL_DIR'].rstrip('/') + '.txt', 'w').write(sys.argv[1])"


def test_custom_jobs_use_the_buckets(execute: Execute, root: Path) -> None:
    from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp

    @dsl.pipeline(name="job")
    def job() -> None:
        container = {"image_uri": "any", "command": ["python3", "-c", SHOW], "args": ["gs://data/folder"]}
        pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
        CustomTrainingJobOp(display_name="j", worker_pool_specs=[pool], base_output_directory="gs://data/base")

    record = execute(job, gcs_root=root)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert (root / "data" / "base" / "model.txt").read_text() == str(root / "data" / "folder")


@pytest.mark.parametrize("base", ["gs://data/a link/base", "gs://data/base"])
def test_no_job_writes_through_a_link(link: Path, tmp_path: Path, base: str) -> None:
    (link.parent / "base").mkdir()
    (link.parent / "base" / "checkpoints").symlink_to(tmp_path / "outside")
    container = {"image_uri": "any", "command": ["python3", "-c", SHOW, "x"]}
    pool = {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": container}
    spec = {"worker_pool_specs": [pool], "base_output_directory": {"output_uri_prefix": base}}
    job = jobs.read_job({"display_name": "j", "job_spec": spec}, region="us-central1", warn=print)
    workspace = jobs.Workspace(folder=tmp_path / "job", private_dir=tmp_path / "own", buckets=link.parents[1])
    with pytest.raises(OutsideBucket, match=LEADS_OUT):
        jobs.run_job(job, workspace=workspace, processes=Processes(grace_seconds=1))
    assert [each.name for each in link.iterdir()] == ["a.txt"]


def test_the_server_maps_buckets_for_pipelines(compiled: Compile, tmp_path: Path, root: Path) -> None:
    spec = json.loads(compiled(pipeline).read_text())
    with Server(tmp_path / "runs", "--gcs-root", str(root)) as server:
        body: dict[str, Any] = {"pipelineSpec": spec, "runtimeConfig": {"gcsOutputDirectory": "gs://data/out"}}
        name = server.call("POST", "pipelineJobs", body).json()["name"].rpartition("/")[2]
        wait_until(lambda: server.call("GET", f"pipelineJobs/{name}").json().get("endTime"))
        assert server.call("GET", f"pipelineJobs/{name}").json()["state"] == "PIPELINE_STATE_SUCCEEDED"
    assert list((root / "data" / "out" / name).glob("read_*/model"))
