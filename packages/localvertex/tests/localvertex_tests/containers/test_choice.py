"""How container commands run is decided and said before anything starts."""

import os
import sys
from pathlib import Path

import pytest
from kfp import dsl

import localvertex
from localvertex.containers.choice import Choice
from localvertex.containers.options import ContainerOptions
from localvertex.containers.sandbox import _binds
from vertex_testing.runs import STEP, Command, Compile


@dsl.container_component
def greet() -> dsl.ContainerSpec:
    return dsl.ContainerSpec(image="alpine", command=["sh", "-c", "echo hello"])


@dsl.component(**STEP)
def python_step() -> str:
    return "python"


@dsl.pipeline(name="greets")
def greets() -> None:
    greet().after(python_step())


@dsl.pipeline(name="plain")
def plain() -> None:
    python_step()


@pytest.fixture
def programs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Make a PATH that has a shell, but no bubblewrap."""
    folder = tmp_path / "programs"
    folder.mkdir()
    for name in ("sh", "mktemp", "dirname", "mkdir"):
        (folder / name).symlink_to(f"/bin/{name}")
    monkeypatch.setenv("PATH", str(folder))
    return folder


@pytest.mark.parametrize("is_broken", [False, True])
def test_without_a_sandbox_nothing_starts_unless_the_user_allows_it(
    programs: Path, compiled: Compile, command: Command, tmp_path: Path, is_broken: bool
) -> None:
    if is_broken:
        (programs / "bwrap").write_text("#!/bin/sh\necho 'bwrap: setting up uid map: Permission denied' >&2\nexit 1\n")
        (programs / "bwrap").chmod(0o755)
    compiled(greets)
    done = command("run", "pipeline.json", PATH=str(programs))
    assert done.returncode == 2
    expected = (
        "does not work here (bwrap: setting up uid map: Permission denied)" if is_broken else "install bubblewrap"
    )
    assert expected in done.stderr
    assert "add --engine docker, --engine podman or --allow-host-commands" in done.stderr
    assert len(done.stderr.partition("add to localvertex.toml:")[0].splitlines()) == 2
    assert not (tmp_path / "runs").exists()
    done = command("run", "pipeline.json", "--allow-host-commands", PATH=str(programs))
    assert done.returncode == 0, done.stdout
    first = done.stdout.splitlines()[0]
    assert first.startswith("warning: container commands run on this machine, not in their images, with your files")


def test_a_pipeline_without_container_commands_needs_none_of_it(
    programs: Path, compiled: Compile, command: Command, tmp_path: Path
) -> None:
    (programs / "bwrap").write_text(f"#!/bin/sh\ntouch {tmp_path}/called\nexit 1\n")
    (programs / "bwrap").chmod(0o755)
    compiled(plain)
    done = command("run", "pipeline.json", PATH=str(programs))
    assert (done.returncode, "container commands" in done.stdout) == (0, False)
    assert not (tmp_path / "called").exists()


@pytest.mark.usefixtures("sandbox")
def test_the_first_line_says_that_there_is_a_sandbox(compiled: Compile, command: Command) -> None:
    compiled(greets)
    done = command("run", "pipeline.json")
    assert done.returncode == 0, done.stdout
    first = done.stdout.splitlines()[0]
    assert first.startswith("warning: container commands run in a bubblewrap sandbox on this machine, not in their")
    assert "without network (--allow-network)" in first
    assert "with your network" in command("run", "pipeline.json", "--allow-network").stdout.splitlines()[0]


@pytest.mark.usefixtures("sandbox")
def test_a_program_that_the_sandbox_hides_is_refused_before_the_run(
    compiled: Compile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    @dsl.container_component
    def mine() -> dsl.ContainerSpec:
        return dsl.ContainerSpec(image="mine", command=["my-program"])

    @dsl.pipeline(name="hidden")
    def hidden() -> None:
        mine()

    (tmp_path / "my-program").write_text("#!/bin/sh\n")
    (tmp_path / "my-program").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    with pytest.raises(localvertex.Refused, match="which the sandbox does not show"):
        localvertex.run(compiled(hidden), options=localvertex.Options(work_dir=tmp_path / "runs"))


@pytest.mark.usefixtures("sandbox")
def test_the_home_directory_is_never_shown_as_a_whole(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Python looks for modules in the current folder, which may be the home directory."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr("sys.path", [str(tmp_path), str(tmp_path.parent), *sys.path])
    sandbox = Choice(ContainerOptions()).how
    (tmp_path / "secret").touch()
    assert not sandbox.shows(tmp_path / "secret")
    assert sandbox.shows("/usr")
    assert sandbox.shows(os.__file__)


def test_an_interpreter_behind_a_link_that_the_root_shows_is_mounted_where_it_is(tmp_path: Path) -> None:
    """bubblewrap mounts nothing on a link, such as a linked `.venv` in a folder of the system."""
    shown = next(each for each in Path("/usr/bin").iterdir() if each.is_symlink() and each.exists())
    hidden = tmp_path / "linked"
    hidden.symlink_to(sys.prefix)
    real, prefix = os.path.realpath(shown), os.path.realpath(sys.prefix)
    expected = ["--ro-bind", real, real, "--ro-bind", prefix, prefix, "--ro-bind", prefix, str(hidden)]
    assert _binds("--ro-bind", [shown, hidden]) == expected
