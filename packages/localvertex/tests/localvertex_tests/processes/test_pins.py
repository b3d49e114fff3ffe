"""Pinned versions that this Python does not have: the nearest of the same minor, or refused before the start."""

import importlib.util
import io
import json
import shutil
import sys
import tarfile
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.processes.test_environments import make_wheel

import localvertex
from localvertex.containers.stand_ins import StandIns
from localvertex.processes import interpreters, pins
from localvertex.runner.checks.pinned_versions import replacements
from localvertex.runner.engine import open_file
from localvertex.values.configuration import Configuration
from vertex_testing.runs import Compile, Execute, FindTask

PYTHON = f"Python {sys.version_info[0]}.{sys.version_info[1]}"


@pytest.fixture
def index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a folder of wheels the only source of packages, and count the calls of pip before a run."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    for version in ("1.2.0", "1.2.3", "1.2.9", "1.3.0", "2.0.0"):
        make_wheel(folder, version)
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(folder))
    return folder


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Record the install scripts that are tried before a run."""
    made: list[str] = []
    resolve = pins.resolve

    def record(script: str, **options: Any) -> Any:
        made.append(script)
        return resolve(script, **options)

    monkeypatch.setattr(pins, "resolve", record)
    return made


def using(*packages: str) -> Any:
    @dsl.component(base_image="python:3.11", packages_to_install=[*packages], install_kfp_package=False)
    def use() -> str:
        import tinypkg

        return tinypkg.VERSION

    @dsl.pipeline(name="uses")
    def uses() -> None:
        use()
        use()

    return uses


def make_source(folder: Path, name: str, backend: str) -> None:
    """Make a source distribution with its own build program; needs no network."""
    settings = '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
    with tarfile.open(folder / f"{name}-1.0.tar.gz", "w:gz") as archive:
        for path, text in (("pyproject.toml", settings), ("backend.py", backend), ("PKG-INFO", f"Name: {name}\n")):
            member = tarfile.TarInfo(f"{name}-1.0/{path}")
            member.size = len(text.encode())
            archive.addfile(member, io.BytesIO(text.encode()))


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap makes the mask")
def test_what_a_check_of_pins_builds_finds_no_secret(
    execute: Execute, index: Path, work_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    token, found = work_dir / "api" / "token", tmp_path / "found.txt"
    token.parent.mkdir(parents=True)
    token.write_text("the token")
    monkeypatch.setenv("MY_API_TOKEN", "the key")
    look = f"""
import os, pathlib
token = pathlib.Path({str(token)!r})
with open({str(found)!r}, "a") as file:
    print(token.exists() and token.read_text(), os.environ.get("MY_API_TOKEN"), file=file)
raise SystemExit("not built")
"""
    make_source(index, "nosy", look)
    assert execute(using("nosy==1.0"))["state"] == "FAILED"
    # Of the check, and of the installation.
    assert {*found.read_text().splitlines()} == {"False None"}


@pytest.mark.slow
def test_the_version_that_replaces_a_pin_is_used_said_once_and_in_the_record_of_each_step(
    execute: Execute, task: FindTask, index: Path, calls: list[str]
) -> None:
    """The nearest of the same minor, and of a relaxed package any other."""
    make_wheel(index, "2.0.0", name="otherpkg")
    configuration = Configuration(packages={"relax": ["otherpkg"]})
    record = execute(using("tinypkg==1.2.4", "otherpkg==1.9.1"), configuration=configuration)
    assert record["state"] == "SUCCEEDED", record["error"]
    assert task(record, "use")["outputs"]["parameters"]["Output"] == "1.2.3"
    replaced = {"tinypkg==1.2.4": "tinypkg==1.2.3", "otherpkg==1.9.1": "otherpkg==2.0.0"}
    said = "; ".join(
        f"{wanted} cannot be installed on the Python of its step; using {used} instead"
        for wanted, used in replaced.items()
    )
    assert [text for text in record["warnings"] if "cannot be installed" in text] == [said]
    assert len(calls) == 1
    found = [(each["step"], each["wanted"], each["used"]) for each in record["replaced_packages"]]
    assert sorted(found) == sorted((path, *pair) for path in ("use", "use-2") for pair in replaced.items())


@pytest.mark.usefixtures("index")
def test_without_any_version_of_the_minor_the_run_is_refused(compiled: Compile, work_dir: Path) -> None:
    with pytest.raises(localvertex.Refused) as refused:
        localvertex.run(compiled(using("tinypkg==1.9.1")), options=localvertex.Options(work_dir=work_dir))
    (reason,) = refused.value.reasons
    assert reason.startswith(
        "deploymentSpec.executors.exec-use.container: tinypkg==1.9.1 and other releases of its minor version cannot "
        f"be installed on {PYTHON}"
    )
    assert refused.value.proposal == '[packages]\nrelax = ["tinypkg"]'
    assert not work_dir.exists()


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_a_version_that_exists_is_installed_and_not_checked_again(
    execute: Execute, task: FindTask, calls: list[str]
) -> None:
    for _ in range(2):
        record = execute(using("tinypkg==1.3.0"), use_cache=False)
        assert task(record, "use")["outputs"]["parameters"]["Output"] == "1.3.0"
    assert len(calls) == 1


@pytest.mark.usefixtures("index")
def test_what_is_installed_here_and_what_has_no_pin_cost_nothing(
    compiled: Compile, work_dir: Path, calls: list[str]
) -> None:
    import kfp

    for package in (f"kfp=={kfp.__version__}", "tinypkg", "tinypkg>=1.2", "tinypkg==1.*"):
        pipeline = open_file(compiled(using(package))).pipeline
        assert replacements(pipeline, work_dir, StandIns(), Configuration()) == {}
    assert calls == []


def test_without_a_connection_the_run_decides(
    compiled: Compile, work_dir: Path, monkeypatch: pytest.MonkeyPatch, calls: list[str]
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    pipeline = open_file(compiled(using("tinypkg==1.2.4"))).pipeline
    assert replacements(pipeline, work_dir, StandIns(), Configuration()) == {}
    assert len(calls) == 1


def test_nothing_of_a_script_but_its_pip_runs_before_the_start(index: Path, tmp_path: Path) -> None:
    """kfp's script also installs pip where there is none."""
    marker = tmp_path / "started"
    script = f'touch {marker}; python3 -m ensurepip; python3 -m pip install --quiet "tinypkg==1.2.4" && "$0" "$@"'
    assert pins.resolve(script) == ({"tinypkg==1.2.4": "tinypkg==1.2.3"}, "")
    assert not marker.exists()
    assert importlib.util.find_spec("tinypkg") is None


def test_only_the_pin_itself_is_replaced() -> None:
    script = "pip install 'a==1.2' 'aa==1.2' 'a[x]==1.2' 'a==1.2.1' \"b-a==1.2\" && \"$0\" \"$@\""
    expected = script.replace("'a==1.2'", "'a==1.2.7'").replace("a[x]==1.2", "a[x]==1.2.7")
    assert pins.replaced(script, {"a==1.2": "a==1.2.7"}) == expected
    assert json.dumps(pins.unsatisfied(script)) == '["a==1.2", "aa==1.2", "a[x]==1.2", "a==1.2.1", "b-a==1.2"]'


@pytest.mark.usefixtures("index")
@pytest.mark.parametrize(("wanted", "used"), [("1.9.1", "2.0.0"), ("2.1.0", "2.0.0"), ("1.2.4", "1.2.3")])
def test_a_relaxed_pin_takes_the_next_newer_release_else_the_newest_older_one(wanted: str, used: str) -> None:
    script = f'python3 -m pip install "tinypkg=={wanted}" && "$0" "$@"'
    assert pins.resolve(script, relaxed={"tinypkg"}) == ({f"tinypkg=={wanted}": f"tinypkg=={used}"}, "")


@pytest.mark.slow
@pytest.mark.usefixtures("index")
def test_the_refusal_names_what_would_let_the_step_run(monkeypatch: pytest.MonkeyPatch, index: Path) -> None:
    script = 'python3 -m pip install --quiet "tinypkg==1.9.1" && "$0" "$@"'
    monkeypatch.setattr(interpreters, "others", list)
    _, reason = pins.resolve(script)
    assert reason.endswith('; add to localvertex.toml under [packages]: relax = ["tinypkg"] to use tinypkg==2.0.0')
    older = replace(interpreters.OWN, path=Path("/opt/python3.9"), version="3.9.18", search_path=())
    monkeypatch.setattr(interpreters, "others", lambda: [older])
    wheel = make_wheel(index, "1.9.1")
    Path(wheel).rename(wheel.replace("py3-none", "cp39-none"))
    _, reason = pins.resolve(script)
    assert reason.endswith(', or python = "/opt/python3.9" to use Python 3.9, which has it')
    assert pins.resolve(script, python=older) == ({}, "")


@pytest.mark.slow
def test_packages_that_exclude_each_other_are_reported_in_pips_own_sentence(execute: Execute, index: Path) -> None:
    make_wheel(index, "3.0.0")
    needs = index / "needy-1.0-py3-none-any.whl"
    with zipfile.ZipFile(needs, "w") as wheel:
        info = "needy-1.0.dist-info"
        metadata = "Metadata-Version: 2.1\nName: needy\nVersion: 1.0\nRequires-Dist: tinypkg<2\n"
        wheel.writestr(f"{info}/METADATA", metadata)
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/RECORD", "")
    record = execute(using("needy==1.0", "tinypkg==2.0.0"))
    assert record["state"] == "FAILED"
    sentence = (
        "Cannot install needy==1.0 and tinypkg==2.0.0 because these package versions have conflicting dependencies. "
        "The conflict is caused by: The user requested tinypkg==2.0.0 needy 1.0 depends on tinypkg<2"
    )
    assert record["error"] == f"use: installing the packages failed with a conflict: {sentence}"


def test_a_check_builds_nothing_and_a_pin_without_a_wheel_stays(index: Path, tmp_path: Path) -> None:
    built = tmp_path / "built"
    make_source(index, "slowpkg", f"open({str(built)!r}, 'w')\nraise SystemExit('not built')\n")
    sources = f'"slowpkg==1.0" "{index}/slowpkg-1.0.tar.gz" "./slowpkg"'
    script = f'python3 -m pip install --quiet "tinypkg==1.2.4" {sources} && "$0" "$@"'
    for python in (interpreters.OWN, replace(interpreters.OWN, path=Path("/opt/python3.9"), version="3.9.18")):
        assert pins.resolve(script, python=python) == ({"tinypkg==1.2.4": "tinypkg==1.2.3"}, "")
    assert not built.exists()


@pytest.mark.usefixtures("index")
def test_each_step_has_a_line_and_what_has_no_time_is_not_checked(compiled: Compile, work_dir: Path) -> None:
    pipeline = open_file(compiled(using("tinypkg==1.2.4"))).pipeline
    lines, notes = list[str](), list[str]()
    found = replacements(pipeline, work_dir, StandIns(), Configuration(), report=lines.append, warn=notes.append)
    assert (found, notes) == ({"tinypkg==1.2.4": "tinypkg==1.2.3"}, [])
    assert lines == ["checking the packages of exec-use: tinypkg==1.2.4"]
    late = replacements(
        pipeline, work_dir, StandIns(), Configuration(), report=lines.append, warn=notes.append, has_time=lambda: False
    )
    assert (late, len(lines), len(notes)) == ({}, 1, 1)
    assert notes[0].startswith("not checked in 60 s: the packages of exec-use")
