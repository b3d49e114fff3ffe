"""`.ci/run` on a machine without a browser and Node: it installs them, or fails before anything is tested."""

import pathlib
import re
import shutil
import subprocess

import pytest
import yaml

STUB = '#!/bin/sh\necho "{name} $*"\n{rest}\n'


@pytest.fixture
def programs(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with all programs that the script may call; they print their arguments."""
    for name in ("bash", "dirname", "env"):
        (tmp_path / name).symlink_to(str(shutil.which(name)))
    for name in ("make", "apt-get"):
        write(tmp_path, name)
    write(tmp_path, "sudo", 'shift\nexec "$@"')
    (tmp_path / "id").write_text("#!/bin/sh\necho 0\n")
    (tmp_path / "id").chmod(0o755)
    return tmp_path


def write(folder: pathlib.Path, name: str, rest: str = "") -> None:
    (folder / name).write_text(STUB.format(name=name, rest=rest))
    (folder / name).chmod(0o755)


def run(repository: pathlib.Path, programs: pathlib.Path) -> tuple[int, list[str]]:
    """Run the script with these programs alone; return its exit code and what was called."""
    done = subprocess.run(
        ["bash", repository / ".ci" / "run"], env={"PATH": str(programs)}, capture_output=True, text=True
    )
    return done.returncode, done.stdout.splitlines()


TESTS = ["make clean", "make check", "make test", "make test-alone", "make test-slow"]
INSTALL = "apt-get install -qq -y --no-install-recommends"


def test_only_what_is_missing_is_installed(repository: pathlib.Path, programs: pathlib.Path) -> None:
    everything = ["Installing chromium nodejs npm", "apt-get update -qq", f"{INSTALL} chromium nodejs npm"]
    assert run(repository, programs) == (0, everything + TESTS)
    write(programs, "chromium-browser")
    assert run(repository, programs)[1][2] == f"{INSTALL} nodejs npm"
    write(programs, "npm")
    assert run(repository, programs) == (0, TESTS)


def test_another_user_than_root_installs_with_sudo(repository: pathlib.Path, programs: pathlib.Path) -> None:
    (programs / "id").write_text("#!/bin/sh\necho 1000\n")
    calls = run(repository, programs)[1]
    assert calls[1] == "sudo -n apt-get update -qq"
    assert calls[3] == f"sudo -n env DEBIAN_FRONTEND=noninteractive {INSTALL} chromium nodejs npm"


@pytest.mark.parametrize("failing", ["apt-get", "sudo"])
def test_nothing_is_tested_when_they_cannot_be_installed(
    repository: pathlib.Path, programs: pathlib.Path, failing: str
) -> None:
    write(programs, failing, "exit 100")
    if failing == "sudo":
        (programs / "id").write_text("#!/bin/sh\necho 1000\n")
    code, calls = run(repository, programs)
    assert code == 100
    assert not [each for each in calls if each.startswith("make")]


def test_the_workflow_calls_targets_of_the_makefile_with_pinned_actions(repository: pathlib.Path) -> None:
    workflow = yaml.safe_load((repository / ".github" / "workflows" / "check.yml").read_text())
    assert workflow["permissions"] == {"contents": "read"}
    steps = {name: job["steps"] for name, job in workflow["jobs"].items()}
    # `.ci/run` makes a fresh environment first; a runner has one.
    assert [each["run"] for each in steps["linux"] if "run" in each] == TESTS[1:]
    makefile = (repository / "Makefile").read_text()
    for step in (*steps["linux"], *steps["macos"]):
        if "uses" in step:
            assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40}", step["uses"])
        else:
            assert re.search(rf"^{step['run'].removeprefix('make ')}:", makefile, re.M)
