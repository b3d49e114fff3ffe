"""Images of localvertex.toml: their source, interpreter, packages and command run in place of the image."""

import importlib.util
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from google_cloud_pipeline_components.v1.custom_job import CustomTrainingJobOp
from kfp import dsl
from localvertex_tests.processes.test_environments import make_old_kfp, make_wheel

import localvertex
from localvertex._base.userinput.errors import UserError
from localvertex.containers.stand_ins import StandIn, StandIns
from localvertex.errors import Refused
from localvertex.processes import interpreters
from localvertex.runner import engine
from localvertex.runner.options import Options
from localvertex.values import configuration
from localvertex.values.configuration import Configuration
from vertex_testing.runs import Compile, Execute, FindTask

IMAGE = "gcr.io/project/train"

TRAIN = """
import os, pathlib, sys
import training
out = pathlib.Path(sys.argv[1])
out.parent.mkdir(parents=True, exist_ok=True)
out.write_text(f"{training.NAME} {sys.argv[2]} {os.environ.get('MARK', '')}")
"""


@pytest.fixture
def source(tmp_path: Path) -> Path:
    """Return the source folder of an image: a package, a script, and an environment that does not count."""
    folder = tmp_path / "src"
    for name in ("training/__init__.py", "app/train.py", "other/run.py", ".venv/train.py", "env/train.py"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("NAME = 'ours'\n" if "training" in name else TRAIN)
    (folder / "env/pyvenv.cfg").touch()
    (folder / "training/__main__.py").write_text(TRAIN)
    return folder


def using(**image: Any) -> dict[str, Any]:
    """Return options with one image in the configuration."""
    table = {name: [*each] if isinstance(each, tuple) else str(each) for name, each in image.items()}
    return {"configuration": Configuration(image={IMAGE: table})}


def running(command: list[str], args: list[str] | None = None, image: str = f"{IMAGE}:1") -> Any:
    """Return a pipeline of one container component that writes `text`."""

    @dsl.container_component
    def train(text: dsl.OutputPath(str)) -> dsl.ContainerSpec:  # type: ignore[valid-type]
        return dsl.ContainerSpec(image=image, command=command, args=[*(args or []), text, "here"])

    @dsl.pipeline(name="trains")
    def trains() -> None:
        train()

    return trains


@pytest.mark.parametrize(
    "command",
    [
        ["python", "-m", "training"],
        ["python3", "/app/train.py"],
        ["/opt/conda/bin/python3.8", "-u", "train.py"],
        ["python", "/pipelines/component/app/train.py"],
    ],
    ids=" ".join,
)
def test_python_code_of_the_image_is_found_in_its_source(source: Path, command: list[str]) -> None:
    stand_in = StandIns(using(path=source)["configuration"]).of(f"{IMAGE}@sha256:{'0' * 64}")
    words = stand_in.words(command, ["{{$.inputs.parameters['a']}}"])
    expected = command[-1] if "-m" in command else str(source / "app" / "train.py")
    assert words == ("python3", *command[1:-1], expected, "{{$.inputs.parameters['a']}}")
    assert stand_in.add_path({"PYTHONPATH": "/mine"})["PYTHONPATH"] == f"{source}{os.pathsep}/mine"


def test_a_command_names_its_script_and_interpreter_relative_to_the_file(tmp_path: Path) -> None:
    (tmp_path / "env").symlink_to(sys.prefix)
    (tmp_path / "app").mkdir()
    (tmp_path / "app" / "train.py").touch()
    python = f"env/bin/{Path(sys.executable).name}"
    image = {"command": [python, "app/train.py", "app", "missing/train.txt"]}
    stand_in = StandIns(Configuration(file=tmp_path / "localvertex.toml", image={IMAGE: image})).of(IMAGE)
    assert stand_in.words(["the", "image's"], ["1"]) == (
        "python3",
        str(tmp_path / "app" / "train.py"),
        "app",
        "missing/train.txt",
        "1",
    )
    assert stand_in.python.path == tmp_path / python


def test_a_module_of_the_repository_is_proposed_as_source_and_never_as_a_package_of_an_index(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "src" / "shop").mkdir(parents=True)

    @dsl.component(base_image=IMAGE, install_kfp_package=False)
    def train() -> None:
        import shop  # noqa: F401

    @dsl.pipeline
    def trains() -> None:
        train()

    with pytest.raises(Refused) as error:
        engine.open_file(compiled(trains))
    text = f'its base image has shop, and so has this repository; add to [image."{IMAGE}"]: path = "src"'
    assert text in str(error.value)
    assert error.value.proposal.startswith(f'[image."{IMAGE}"]\npath = ')
    assert "packages" not in error.value.proposal
    (tmp_path / "localvertex.toml").write_text(error.value.proposal.replace("path/to/source", "src"))
    options = Options(configuration=configuration.read(tmp_path / "localvertex.toml"))
    assert engine.open_file(compiled(trains), options).pipeline.name == "trains"


def test_what_is_not_in_the_source_is_said_in_one_line(source: Path) -> None:
    stand_in = StandIns(using(path=source)["configuration"]).of(IMAGE)
    (source / "second").mkdir()
    (source / "second" / "train.py").touch()
    for command, expected in (
        (["python", "/srv/train.py"], f"could be app/train.py and second/train.py below {source}"),
        (["python", "-m", "absent.task"], "the module 'absent.task' is neither below path of "),
        (["python", "missing.py"], f"the script 'missing.py' is not below {source}"),
        ([], f"the entry point of '{IMAGE}' is not known locally; add to"),
    ):
        with pytest.raises(UserError) as error:
            stand_in.words(command, [])
        assert expected in str(error.value)
        assert "\n" not in str(error.value)
    with pytest.raises(UserError, match=r"'train.py' is only in its image; add to .*: path = "):
        StandIn(image=IMAGE).words(["python", "train.py"], [])
    # Not the user's choice, so that it goes where container commands go.
    assert stand_in.words(["sh", "-c", "python train.py"], []) == ()
    assert StandIn().words(["python", "train.py"], []) == ()


@pytest.mark.slow
def test_a_container_component_runs_its_source_and_again_when_that_changes(
    source: Path, execute: Execute, task: FindTask
) -> None:
    outputs = []
    for text in ("ours", "ours", "changed"):
        (source / "training/__init__.py").write_text(f"NAME = {text!r}\n")
        os.utime(source / "training/__init__.py", (len(text), len(text)))
        record = execute(running(["python", "-m", "training"]), **using(path=source))
        assert record["state"] == "SUCCEEDED", record["error"]
        outputs.append((task(record, "train")["outputs"]["parameters"]["text"], task(record, "train")["cache_hit"]))
    assert outputs == [("ours here ", False), ("ours here ", True), ("changed here ", False)]


@pytest.mark.slow
def test_a_start_up_file_of_the_source_does_not_let_calls_leave_the_machine(source: Path, execute: Execute) -> None:
    (source / "sitecustomize.py").write_text("print('started', flush=True)\n")
    (source / "calls.py").write_text("import socket\nsocket.getaddrinfo('bigquery.googleapis.com', 443)\n")

    @dsl.container_component
    def calls():  # noqa: ANN202
        return dsl.ContainerSpec(image=IMAGE, command=["python", "/app/calls.py"])

    @dsl.pipeline
    def calling() -> None:
        calls()

    record = execute(calling, **using(path=source))
    log = Path(record["work_dir"], record["run_id"], "calls", "log.txt").read_text()
    assert log.startswith("started\n")
    assert "a connection was not sent: localvertex does not answer it for bigquery.googleapis.com" in log


@pytest.mark.slow
def test_the_users_command_replaces_the_entry_point(source: Path, execute: Execute, task: FindTask) -> None:
    script = 'test "$1" = first && printf "$3" > "$2"'
    record = execute(running([], ["first"]), **using(command=("sh", "-c", script, "sh")))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "train")["outputs"]["parameters"]["text"] == "here"


@pytest.mark.slow
def test_a_shell_command_finds_the_source_where_container_commands_run(
    source: Path, execute: Execute, task: FindTask
) -> None:
    record = execute(running(["sh", "-c", 'python3 -m training "$0" "$1"']), **using(path=source))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "train")["outputs"]["parameters"]["text"] == "ours here "


COMPONENT = """
from kfp import dsl

@dsl.component(target_image="{image}", base_image="python:3.11")
def scale(number: int) -> int:
    import training
    return number * len(training.NAME)
"""


@pytest.mark.slow
def test_a_containerized_component_runs_the_file_that_defines_it(
    source: Path, compiled: Compile, execute: Execute, task: FindTask
) -> None:
    (source / "components.py").write_text(COMPONENT.format(image=IMAGE))
    spec = importlib.util.spec_from_file_location("components", source / "components.py")
    assert spec is not None
    assert spec.loader is not None
    components = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(components)

    @dsl.pipeline(name="scales")
    def scales() -> None:
        components.scale(number=3)

    with pytest.raises(localvertex.Refused, match="whose code is in the image"):
        engine.open_file(compiled(scales))
    record = execute(scales, **using(path=source))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "scale")["outputs"]["parameters"]["Output"] == 12


@pytest.mark.slow
def test_replicas_of_custom_jobs_run_the_source_of_their_images(
    source: Path, execute: Execute, task: FindTask, tmp_path: Path
) -> None:
    @dsl.pipeline(name="jobs")
    def jobs() -> None:
        for name, container in (
            ("module", {"command": ["python", "-m", "training"]}),
            ("entry", {}),
        ):
            args = [str(tmp_path / name), "job"]
            spec = {"image_uri": f"{IMAGE}:2", "args": args, "env": [{"name": "MARK", "value": name}], **container}
            CustomTrainingJobOp(
                display_name=name,
                worker_pool_specs=[
                    {"machine_spec": {"machine_type": "n1-standard-4"}, "replica_count": 1, "container_spec": spec}
                ],
            )

    with pytest.raises(localvertex.Refused, match="'training' is not installed locally"):
        execute(jobs)
    record = execute(jobs, **using(path=source, command=("python", "app/train.py")))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert (tmp_path / "entry").read_text() == "ours job entry"
    assert (tmp_path / "module").read_text() == "ours job module"


def test_a_misspelt_image_is_refused_and_one_of_another_pipeline_is_not(compiled: Compile, source: Path) -> None:
    file = compiled(running(["true"], image="gcr.io/project/trains"))
    options = localvertex.Options(**using(path=source))
    with pytest.raises(UserError, match=r'no step uses this container image; did you mean "gcr.io/project/trains"\?'):
        engine.open_file(file, options)
    engine.open_file(file, localvertex.Options(**using(path=source), has_other_images=True))
    other = Configuration(image={"docker.io/someone/serve": {"path": str(source)}})
    engine.open_file(file, localvertex.Options(configuration=other))


def test_a_folder_and_an_interpreter_are_checked_before_the_run(compiled: Compile, tmp_path: Path) -> None:
    silent, file = tmp_path / "silent", compiled(running(["true"]))
    silent.write_text("#!/bin/sh\nexit 3\n")
    silent.chmod(0o755)
    for image, expected in (
        ({"path": tmp_path / "absent"}, "is not a folder; name the source folder"),
        ({"python": tmp_path / "absent"}, "No such file or directory; expected an interpreter such as"),
        ({"python": tmp_path}, "Permission denied; expected an interpreter such as"),
        ({"python": silent}, "it does not answer as Python does; expected an interpreter"),
    ):
        with pytest.raises(UserError, match=expected):
            engine.open_file(file, localvertex.Options(**using(**image)))


def test_a_check_asks_an_interpreter_only_for_itself(compiled: Compile, tmp_path: Path) -> None:
    """Neither code of the repository nor a package of the interpreter runs."""
    asked, python = tmp_path / "asked", tmp_path / "python"
    python.write_text(f'#!/bin/sh\nprintf "%s\\n" "$*" >> {asked}\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    (tmp_path / "src").mkdir()
    (tmp_path / "src" / "training.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    options = localvertex.Options(**using(path=tmp_path / "src", python=python))
    engine.open_file(compiled(running(["python", "-m", "training"])), options)
    assert asked.read_text().startswith("-I -c import sys; print(")
    assert asked.read_text().count("-I -c") == 1
    assert not (tmp_path / "ran").exists()


def importing(image: str = "pytorch/pytorch:2.3", **options: Any) -> Any:
    """Return a pipeline of a Python step that imports a package of its base image."""

    @dsl.component(base_image=image, **options)
    def learn() -> str:
        import tinypkg

        return tinypkg.VERSION

    @dsl.pipeline(name="learns")
    def learns() -> None:
        learn()

    return learns


@pytest.mark.parametrize("options", [{}, {"install_kfp_package": False}], ids=["with kfp", "without"])
def test_a_package_of_the_base_image_is_named_before_the_run(compiled: Compile, options: dict[str, Any]) -> None:
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(compiled(importing(**options)))
    (reason,) = refused.value.reasons
    assert "tinypkg is in its base image 'pytorch/pytorch:2.3', but not installed here" in reason
    assert '[image."pytorch/pytorch:2.3"]: path = "FOLDER" with its source, or python = ' in reason
    assert "packages" not in refused.value.proposal
    # A step that installs something may install this; a plain image does not have it on Vertex AI.
    engine.open_file(compiled(importing(packages_to_install=["other"]), "other.yaml"))
    engine.open_file(compiled(importing("python:3.11"), "plain.yaml"))


@pytest.mark.slow
def test_packages_of_the_base_image_are_installed_for_its_steps_alone(
    execute: Execute, task: FindTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    wheel = make_wheel(tmp_path, "1.5")
    images = {"pytorch/pytorch": {"packages": [wheel]}}
    record = execute(importing(install_kfp_package=False), configuration=Configuration(image=images))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "learn")["outputs"]["parameters"]["Output"] == "1.5"


@pytest.mark.slow
def test_a_module_that_is_missing_in_a_step_is_named_with_its_image(execute: Execute) -> None:
    @dsl.component(base_image="europe-docker.pkg.dev/vertex-ai/training/sklearn-cpu.1-6:latest")
    def learn() -> None:
        if True:
            import tinypkg

            print(tinypkg)

    @dsl.pipeline(name="learns")
    def learns() -> None:
        learn()

    record = execute(learns)
    assert "No module named 'tinypkg'; tinypkg is in its base image 'europe-docker.pkg.dev" in record["error"]


def _pythons() -> list[Path]:
    """Return an interpreter of each other version on this machine."""
    found = [each.path for each in interpreters.others()]
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    found += [each for each in sorted(versions.glob("3.*/bin/python3"))]
    return found


@pytest.mark.slow
@pytest.mark.parametrize("number", [0, pytest.param(-1, marks=pytest.mark.soak)], ids=["first", "last"])
def test_a_step_runs_in_another_python_with_what_it_installs_there(
    compiled: Compile,
    execute: Execute,
    task: FindTask,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    number: int,
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    usable = []
    for path in _pythons():
        try:
            usable.append(interpreters.read(path))
        except UserError:
            continue
    others = sorted((each for each in usable if each.minor != interpreters.OWN.minor), key=lambda each: each.path)
    if not others:
        pytest.skip("there is one Python alone")
    python, wheel = others[number], make_wheel(tmp_path, "1.5")
    make_old_kfp(tmp_path)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))

    @dsl.component(base_image="tensorflow/tensorflow:2.11", kfp_package_path="kfp==2.0.1", packages_to_install=[wheel])
    def learn(n: int, data: dsl.Output[dsl.Dataset]) -> str:
        import platform
        import subprocess
        import sys

        import tinypkg

        # pip inside the step has an environment of the same Python.
        subprocess.run([sys.executable, "-m", "pip", "--version"], check=True)
        return f"{platform.python_version()} {tinypkg.VERSION}"

    @dsl.pipeline(name="learns")
    def learns() -> None:
        learn(n=1)

    file = compiled(learns, "learns.yaml")
    file.write_text(file.read_text().replace("kfp.dsl.executor_main", "kfp.components.executor_main"))
    before = sorted(python.path.parent.iterdir())
    record = execute(file, configuration=Configuration(packages={"python": str(python.path)}))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "learn")["outputs"]["parameters"]["Output"] == f"{python.version} 1.5"
    assert any(f"steps run in Python {python.version}" in text for text in record["warnings"])
    assert sorted(python.path.parent.iterdir()) == before


def test_an_interpreter_without_kfp_is_refused_with_the_command_that_installs_it(
    compiled: Compile, tmp_path: Path
) -> None:
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", tmp_path / "venv"], check=True)
    python = tmp_path / "venv" / "bin" / "python"
    file = compiled(importing("python:3.11", install_kfp_package=False))
    with pytest.raises(localvertex.Refused) as refused:
        engine.open_file(file, localvertex.Options(configuration=Configuration(packages={"python": str(python)})))
    (reason,) = refused.value.reasons
    assert reason.endswith(f"{python} has no kfp, which the step needs; run: {python} -m pip install kfp")
    assert shlex.split(reason.rpartition("run: ")[2])[0] == str(python)


def test_the_code_in_place_of_an_image_has_a_digest_of_its_programs_and_configuration(tmp_path: Path) -> None:
    source, work_dir = tmp_path / "source", tmp_path / "source" / "runs"
    (source / "package").mkdir(parents=True)
    work_dir.mkdir()
    (source / "train.py").write_text("1")
    prefixes = {"by/folder": ("env", f"--chdir={source}"), "by/file": (str(source / "train.py"),), "by/name": ("env",)}
    stand_ins = StandIns(Configuration(image={"by/table": {"path": str(source)}}))

    def digests() -> dict[str, str]:
        return stand_ins.code_digests(work_dir, prefixes)

    first = digests()
    assert first.keys() == {"by/folder", "by/file", "by/table"}
    # Results, data, and what another run left.
    for name in ("metrics.csv", "runs/run.json", ".cache/a.py"):
        (source / name).parent.mkdir(exist_ok=True)
        (source / name).write_text("changed")
    (source / "train.py").touch()
    assert digests() == first
    (source / "package" / "settings.yaml").write_text("rate: 1")
    second = digests()
    assert [name for name in first if second[name] != first[name]] == ["by/table", "by/folder"]
    (source / "train.py").write_text("2")
    assert not {*first.values(), *second.values()} & {*digests().values()}
    with (source / "large.json").open("wb") as file:
        file.truncate(50_000_001)
    assert digests().keys() == {"by/file"}
