"""Steps that install packages get their own environment; the user's never changes."""

import importlib.metadata
import importlib.util
import sys
import zipfile
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from kfp import dsl

import localvertex
from localvertex.runner import engine
from vertex_testing.runs import Compile, Execute, FindTask, ReadLog


def make_wheel(folder: Path, version: str, name: str = "tinypkg") -> str:
    """Build a wheel with one module and one program; needs no network."""
    path = folder / f"{name}-{version}-py3-none-any.whl"
    info = f"{name}-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr(f"{name}.py", f"VERSION = {version!r}\ndef main():\n    print('tiny', VERSION)\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/entry_points.txt", f"[console_scripts]\ntiny-program = {name}:main\n")
        wheel.writestr(f"{info}/RECORD", "")
    return str(path)


@pytest.fixture(autouse=True)
def offline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Forbid pip to use an index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")


def installing(wheel: str, **options: Any) -> Any:
    """Return a pipeline of one step that installs the wheel and uses its module and its program."""

    @dsl.component(base_image="python:3.11", packages_to_install=[wheel], **options)
    def use() -> str:
        import subprocess

        import kfp
        import tinypkg

        program = subprocess.run(["tiny-program"], capture_output=True, text=True, check=True)
        return f"{tinypkg.VERSION} {program.stdout.strip()} {kfp.__name__}"

    @dsl.pipeline(name="installs")
    def installs() -> None:
        use()

    return installs


@pytest.mark.slow
def test_a_step_finds_what_it_installs_and_the_users_environment_is_unchanged(
    execute: Execute, task: FindTask, log_text: ReadLog, work_dir: Path, tmp_path: Path
) -> None:
    one, two = (installing(make_wheel(tmp_path, version)) for version in ("1.0", "2.0"))
    records = [execute(pipeline, use_cache=False) for pipeline in (one, two, one)]
    results = [task(record, "use")["outputs"]["parameters"]["Output"] for record in records]
    assert results == ["1.0 tiny 1.0 kfp", "2.0 tiny 2.0 kfp", "1.0 tiny 1.0 kfp"]
    assert importlib.util.find_spec("tinypkg") is None
    environments = work_dir / ".localvertex" / "environments"
    complete = list(environments.glob("*/complete.json"))
    assert len(complete) == 2


@pytest.mark.slow
def test_a_half_built_environment_is_built_again(
    execute: Execute, task: FindTask, work_dir: Path, tmp_path: Path
) -> None:
    pipeline = installing(make_wheel(tmp_path, "1.0"), install_kfp_package=False)
    execute(pipeline, use_cache=False)
    (marker,) = (work_dir / ".localvertex" / "environments").glob("*/complete.json")
    (packages,) = marker.parent.glob("lib/*/site-packages")
    (packages / "tinypkg.py").unlink()
    marker.unlink()
    assert execute(pipeline, use_cache=False)["state"] == "SUCCEEDED"


def test_a_failed_installation_fails_the_step_and_leaves_no_environment(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    record = execute(installing(str(tmp_path / "absent-1.0-py3-none-any.whl")))
    assert record["state"] == "FAILED"
    assert "installing the packages failed" in record["error"]
    assert not list((work_dir / ".localvertex" / "environments").glob("*/complete.json"))


def test_two_steps_that_need_the_same_environment_at_the_same_time_share_it(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    wheel = make_wheel(tmp_path, "1.0")

    @dsl.component(base_image="python:3.11", packages_to_install=[wheel], install_kfp_package=False)
    def use(n: int) -> str:
        import tinypkg

        return tinypkg.VERSION

    @dsl.pipeline(name="shares")
    def shares() -> None:
        for n in range(3):
            use(n=n)

    record = execute(shares, max_parallel=3)
    assert [each["outputs"]["parameters"] for each in record["tasks"]] == [{"Output": "1.0"}] * 3
    assert len(list((work_dir / ".localvertex" / "environments").glob("*/complete.json"))) == 1


@pytest.mark.slow
def test_a_step_with_use_venv_gets_the_same_environment(execute: Execute, tmp_path: Path) -> None:
    record = execute(installing(make_wheel(tmp_path, "1.0"), use_venv=True))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert importlib.util.find_spec("tinypkg") is None


@pytest.mark.slow
def test_no_variable_of_the_user_sends_packages_elsewhere(
    execute: Execute, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wheel, users = make_wheel(tmp_path, "1.0"), tmp_path / "users"
    for name in ("PIP_TARGET", "PIP_PREFIX", "PIP_ROOT"):
        monkeypatch.setenv(name, str(users))

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def install(wheel: str) -> str:
        import subprocess
        import sys

        subprocess.run([sys.executable, "-m", "pip", "install", wheel], check=True)
        import tinypkg

        return tinypkg.VERSION

    @dsl.pipeline(name="installs-itself")
    def installs_itself() -> None:
        install(wheel=wheel)

    for pipeline in (installs_itself, installing(wheel, install_kfp_package=False)):
        record = execute(pipeline, use_cache=False)
        assert record["state"] == "SUCCEEDED", record["error"]
    assert not users.exists()


ARTIFACTS = """
class Artifact:
    def __init__(self, uri):
        self.uri = uri
    def _get_path(self):
        return "/gcs/" + self.uri[5:] if self.uri.startswith("gs://") else None
    path = property(lambda self: self._get_path())
"""

EXECUTOR = """
import argparse, json, runpy
from PACKAGE.types.artifact_types import Artifact
parser = argparse.ArgumentParser()
for name in ("component_module_path", "executor_input", "function_to_execute"):
    parser.add_argument("--" + name)
given = parser.parse_args()
executor_input = json.loads(given.executor_input)
inputs, outputs = executor_input["inputs"], executor_input["outputs"]
artifact = Artifact(outputs["artifacts"]["data"]["artifacts"][0]["uri"])
function = runpy.run_path(given.component_module_path)[given.function_to_execute]
with open(outputs["outputFile"], "w") as file:
    json.dump(VALUES, file)
"""

OLD = {
    "kfp.components": '{"parameterValues": {"Output": function(inputs["parameterValues"]["n"], artifact)}}',
    "kfp.v2.components": '{"parameters": {"Output": {"stringValue": '
    'function(inputs["parameters"]["n"]["intValue"], artifact)}}}',
}
"""How the executors of kfp 2.0 and 1.8 read and write parameters, by their packages."""


def make_old_kfp(folder: Path, version: str = "2.0.1") -> None:
    """Build a wheel of an earlier kfp that has only what a step needs, with the module names of 1.8 and 2.0."""
    info = f"kfp-{version}.dist-info"
    with zipfile.ZipFile(folder / f"kfp-{version}-py3-none-any.whl", "w") as wheel:
        for name in ("kfp", "kfp/dsl", "kfp/v2"):
            wheel.writestr(f"{name}/__init__.py", "Dataset, Output = str, list\n")
        for package, values in OLD.items():
            path = package.replace(".", "/")
            wheel.writestr(f"{path}/types/artifact_types.py", ARTIFACTS)
            executor = EXECUTOR.replace("PACKAGE", package).replace("VALUES", values)
            wheel.writestr(f"{path}/executor_main.py", executor)
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: kfp\nVersion: {version}\n")
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")


@pytest.mark.slow
@pytest.mark.parametrize("package", OLD)
def test_a_step_of_an_old_kfp_runs_with_the_kfp_that_it_installs(
    compiled: Compile, execute: Execute, task: FindTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, package: str
) -> None:
    @dsl.component(base_image="python:3.7", kfp_package_path="kfp==2.0.1")
    def write(n: int, data: dsl.Output[dsl.Dataset]) -> str:
        import importlib.metadata

        with open(data.path, "w") as file:
            file.write("written")
        return f"{importlib.metadata.version('kfp')} {n + 1}"

    @dsl.pipeline(name="old")
    def old() -> None:
        write(n=2)

    make_old_kfp(tmp_path)
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    file = compiled(old, "old.yaml")
    text = file.read_text()
    assert "kfp.dsl.executor_main" in text
    file.write_text(text.replace("kfp.dsl.executor_main", f"{package}.executor_main"))
    installed = importlib.metadata.version("kfp")
    record = execute(file)
    assert record["state"] == "SUCCEEDED", record["error"]
    step = task(record, "write")["outputs"]
    assert step["parameters"]["Output"] == "2.0.1 3"
    assert Path(step["artifacts"]["data"][0]["uri"]).read_text() == "written"
    assert importlib.metadata.version("kfp") == installed != "2.0.1"


@pytest.mark.slow
def test_steps_that_pin_an_earlier_kfp_1_8_get_the_last_one_which_is_said_once(
    compiled: Compile, execute: Execute, task: FindTask, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """kfp 1.8.5 and 1.8.13 need PyYAML 5.4, which does not build with today's Cython; here they do not exist."""

    @dsl.component(base_image="python:3.7", kfp_package_path="kfp==1.8.5")
    def first(n: int, data: dsl.Output[dsl.Dataset]) -> str:
        import importlib.metadata

        return importlib.metadata.version("kfp")

    @dsl.component(base_image="python:3.7", kfp_package_path="kfp==1.8.13")
    def second(n: int, data: dsl.Output[dsl.Dataset]) -> str:
        import importlib.metadata

        return importlib.metadata.version("kfp")

    @dsl.pipeline(name="pins")
    def pins() -> None:
        first(n=1)
        second(n=2)

    make_old_kfp(tmp_path, "1.8.22")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    file = compiled(pins, "pins.yaml")
    file.write_text(file.read_text().replace("kfp.dsl.executor_main", "kfp.v2.components.executor_main"))
    record = execute(file)
    assert record["state"] == "SUCCEEDED", record["error"]
    for name in ("first", "second"):
        assert task(record, name)["outputs"]["parameters"]["Output"] == "1.8.22"
    assert len([text for text in record["warnings"] if "kfp==1.8.22, the last release of 1.8" in text]) == 1


def test_a_step_that_needs_a_newer_kfp_is_refused_before_the_run(
    compiled: Compile, work_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def move(data: dsl.Output[dsl.Dataset]) -> None:
        data.set_path("elsewhere")

    @dsl.pipeline(name="moves")
    def moves() -> None:
        move()

    file = compiled(moves)
    engine.open_file(file)
    # An installed kfp without the method, and without one of the classes that the component uses.
    (tmp_path / "kfp" / "dsl" / "types").mkdir(parents=True)
    for name in ("__init__.py", "dsl/__init__.py", "dsl/types/artifact_types.py"):
        (tmp_path / "kfp" / name).write_text("Output = None\n")
    older = ModuleType("kfp")
    older.__spec__ = ModuleSpec("kfp", None, origin=str(tmp_path / "kfp" / "__init__.py"))
    monkeypatch.setitem(sys.modules, "kfp", older)
    with pytest.raises(localvertex.Refused, match=r"step uses \.set_path, dsl\.Dataset, which kfp \S+ does not have"):
        localvertex.run(file, options=localvertex.Options(work_dir=work_dir))
    assert not work_dir.exists()


def test_only_the_code_of_a_step_needs_a_kfp(compiled: Compile, tmp_path: Path) -> None:
    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def work(name: str, data: dsl.Output[dsl.Dataset]) -> None:
        """Take the place of dsl.ContainerOp."""
        # It was dsl.VolumeOp once.
        print("dsl.ResourceOp")

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def parse() -> None:
        from textx import dsl

        dsl.Grammar()

    @dsl.component(base_image="python:3.11", install_kfp_package=False)
    def need() -> None:
        print(dsl.Nothing)

    @dsl.pipeline(name="works")
    def works() -> None:
        work(name="x")
        parse()

    @dsl.pipeline(name="needs")
    def needs() -> None:
        need()

    engine.open_file(compiled(works))
    with pytest.raises(localvertex.Refused, match=r"step uses dsl\.Nothing, which kfp"):
        engine.open_file(compiled(needs, "needs.yaml"))


def test_the_log_of_an_installation_has_pips_lines_and_its_failure_names_pips_error(
    execute: Execute, task: FindTask, log_text: ReadLog, tmp_path: Path
) -> None:
    good = make_wheel(tmp_path, "1.0")

    @dsl.component(base_image="python:3.11", packages_to_install=[good, "absent-pkg"], install_kfp_package=False)
    def use() -> str:
        return "x"

    @dsl.pipeline(name="fails")
    def fails() -> None:
        use()

    record = execute(fails)
    step = task(record, "use")
    assert f"Processing {good}" in log_text(record, step)
    assert "ERROR: No matching distribution found for absent-pkg" in step["error"]
    assert "already satisfied" not in step["error"]


def test_an_installation_that_was_stopped_continues_in_its_environment(
    execute: Execute, work_dir: Path, tmp_path: Path
) -> None:
    """What it has stays, and what it has by halves is installed again."""
    pipeline = installing(make_wheel(tmp_path, "1.0"), install_kfp_package=False)
    execute(pipeline, use_cache=False)
    (marker,) = (work_dir / ".localvertex" / "environments").glob("*/complete.json")
    (packages,) = marker.parent.glob("lib/*/site-packages")
    kept = packages / "kept.py"
    kept.write_text("")
    (info,) = packages.glob("tinypkg-*.dist-info")
    (info / "INSTALLER").unlink()
    (packages / "tinypkg.py").write_text("broken")
    marker.unlink()
    assert execute(pipeline, use_cache=False)["state"] == "SUCCEEDED"
    assert kept.exists()
    assert "VERSION" in (packages / "tinypkg.py").read_text()
