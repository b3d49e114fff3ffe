"""The oldest, pinned and newest kfp and SDK of `pyproject.toml`, each in an environment of its own; needs an index.

`python -m benchmarks.soak.tests` of the repository runs it, and dates its result.
"""

import os
import re
import subprocess
import tomllib
import venv
from pathlib import Path

import pytest

VERSIONS = [("2.14.1", "1.97.0"), ("2.17.0", "1.165.1"), ("2.17.3", "1.165.1"), ("2.17.3", "2.7.0")]
"""kfp and google-cloud-aiplatform, the oldest first; those that pass in the table of docs/localvertex.md."""

TESTS = (
    "base_tests/compiled",
    "localvertex_tests/runner/test_control_flow.py",
    "localvertex_tests/runner/test_values.py",
    "localvertex_tests/processes/test_environments.py",
    "localvertex_tests/api/test_pipeline_jobs.py",
    "localvertex_tests/api/test_models.py",
    "localvertex_tests/api/metadata",
    "localvertex_tests/api/rpc",
)
"""Compiled files, Python steps and the SDK; none uses google-cloud-pipeline-components, which needs the SDK 1."""

KFP, SDK = "kfp", "google-cloud-aiplatform"

NEWER_KFP = "not a_step_that_needs_a_newer_kfp"


@pytest.mark.slow
@pytest.mark.soak
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(("kfp", "sdk"), VERSIONS)
def test_the_tests_pass_with_these_versions(package: Path, tmp_path: Path, kfp: str, sdk: str) -> None:
    pinned = {KFP: kfp, SDK: sdk}
    wanted = [f"{name}=={version}" for name, version in pinned.items()]
    for project, extras in ((package, ("serve", "test")), (package.parent / "testing", ())):
        content = tomllib.loads((project / "pyproject.toml").read_text())["project"]
        texts = content["dependencies"] + [each for extra in extras for each in content["optional-dependencies"][extra]]
        wanted += [each for each in texts if not each.startswith((*pinned, "google-cloud-pipeline-components"))]
    venv.create(tmp_path / "venv", with_pip=True)
    python = str(tmp_path / "venv" / "bin" / "python")
    subprocess.run([python, "-m", "pip", "install", "--quiet", *wanted], check=True)
    (packages,) = (tmp_path / "venv").glob("lib/*/site-packages")
    (packages / "ours.pth").write_text(f"{package}\n{package.parent / 'testing'}\n")
    words = [python, "-m", "pytest", "-q", "-m", "not slow", "-k", NEWER_KFP, "-o", "filterwarnings=default"]
    env = {name: text for name, text in os.environ.items() if not name.startswith("PYTEST_")}
    done = subprocess.run([*words, *(f"tests/{each}" for each in TESTS)], cwd=package, env=env, capture_output=True)
    assert done.returncode == 0, done.stdout.decode()


def test_the_page_names_what_is_tried_and_the_metadata_begin_with_the_oldest(package: Path) -> None:
    page = (package / "docs" / "localvertex.md").read_text()
    rows = re.findall(r"^\| ([\d.]+) \| ([\d., ]+) \| passes", page, re.MULTILINE)
    assert [(kfp, sdk) for kfp, every in rows for sdk in every.split(", ")] == VERSIONS
    extras = tomllib.loads((package / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    lower = {line for extra in ("run", "serve", "prove") for line in extras[extra] if line.startswith((KFP, SDK))}
    kfp, sdk = VERSIONS[0]
    assert lower == {f"{KFP}>={kfp},<3", f"{SDK}>={sdk.removesuffix('.0')},<3"}
