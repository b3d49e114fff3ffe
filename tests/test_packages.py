"""Every list of the product's packages has all packages that exist, and no others."""

import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipelines.project.container_image import image_files


@pytest.fixture(scope="module")
def packages(repository: Path) -> set[str]:
    """The top-level packages of the product."""
    found = {path.parent.name for path in repository.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert "trainer" in found
    return found


@pytest.fixture(scope="module")
def project(repository: Path) -> dict[str, Any]:
    """The content of pyproject.toml."""
    return tomllib.loads((repository / "pyproject.toml").read_text())


def copied(repository: Path) -> set[str]:
    """What the Dockerfile copies from the build context."""
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", (repository / "Dockerfile").read_text(), re.M)
    return {name for line in lines for name in line.split()}


def sent(repository: Path) -> set[str]:
    """What .dockerignore lets into the build context."""
    lines = (repository / ".dockerignore").read_text().splitlines()
    assert lines[0] == "*"
    return {line.removeprefix("!") for line in lines if line.startswith("!")}


def test_the_dockerfile_copies_what_is_sent(repository: Path, packages: set[str]) -> None:
    assert copied(repository) == sent(repository)
    assert packages <= sent(repository)
    assert [name for name in sent(repository) if not (repository / name).exists()] == []


def test_no_other_folder_is_sent(repository: Path, packages: set[str]) -> None:
    assert {name for name in sent(repository) if (repository / name).is_dir()} == packages


def test_the_tag_of_the_image_follows_every_file_of_it(repository: Path) -> None:
    files = image_files()
    assert len(files) == len(set(files))
    assert set(files) == sent(repository) | {"Dockerfile", ".dockerignore", "cloudbuild.yaml"}


def test_an_installation_brings_the_tools_and_what_they_import(repository: Path, tmp_path: Path) -> None:
    copy, unused = tmp_path / "copy", (".*", "build", "tests", "docs", "__pycache__", "node_modules")
    shutil.copytree(repository, copy, ignore=shutil.ignore_patterns(*unused))
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    subprocess.run([*build, "--wheel-dir", tmp_path, copy], check=True)
    folder = tmp_path / "installed"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    names = {path.name for path in folder.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"accelerators", "localvertex", "localvertex_base"}
    page = Path("localvertex", "serve", "console", "page")
    shipped = {each.name for each in (repository / page).rglob("*") if each.is_file()}
    kept = {each.name for each in (folder / page).rglob("*") if each.is_file()}
    assert {each for each in shipped - kept if not each.endswith(".d.ts")} == set()
    program = "import accelerators.__main__ as a; a.main(['suggest', '--accelerator', 'NVIDIA_L4'])"
    # Isolated: neither the repository nor the installed packages of this environment are importable, PyYAML excepted.
    yaml_folder = Path(yaml.__file__).parents[1]
    (folder / "yaml").symlink_to(yaml_folder / "yaml")
    found = subprocess.run(
        [sys.executable, "-I", "-S", "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); {program}"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
    )
    assert found.returncode == 0, found.stderr


def test_mypy_and_ruff_know_all_packages(project: dict[str, Any], packages: set[str]) -> None:
    checked = set(project["tool"]["mypy"]["files"])
    assert packages <= checked
    assert {name for name in checked if not name.endswith(".py")} <= packages | {"benchmarks", "tests"}
    assert set(project["tool"]["ruff"]["lint"]["isort"]["known-first-party"]) == packages | {"cloud", "compile"}


@pytest.mark.parametrize(("package", "below"), [("pillow", 13), ("pyarrow", 26), ("numpy", "2.5")])
def test_every_lock_has_the_versions_that_apache_beam_allows(
    repository: Path, project: dict[str, Any], package: str, below: int | str
) -> None:
    """Bytes of prepared images depend on Pillow: the same version is everywhere."""
    locks = {path.name: path.read_text() for path in sorted((repository / "requirements").glob("*.txt"))}
    assert set(locks) == {"cpu.txt", "cpu-image.txt", "gpu.txt"}
    (version,) = {re.findall(rf"^{package}==(\S+)", lock, re.M)[0] for lock in locks.values()}
    assert [int(part) for part in version.split(".")[:2]] < [int(part) for part in str(below).split(".")]
    wanted = project["project"]["optional-dependencies"]["trainer-base"]
    assert [line for line in wanted if line.lower().startswith(package) and line.endswith(f"<{below}")]


def locked(repository: Path, name: str) -> dict[str, str]:
    """Package -> version of a lock."""
    return dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", (repository / "requirements" / name).read_text(), re.M))


def test_the_images_have_the_same_packages_but_for_cuda_and_beam(repository: Path) -> None:
    of_cpu, of_gpu = locked(repository, "cpu-image.txt"), locked(repository, "gpu.txt")
    assert {name for name in of_cpu.keys() & of_gpu.keys() if of_cpu[name] != of_gpu[name]} == set()
    assert {name for name in of_gpu.keys() - of_cpu.keys() if not name.startswith("nvidia-")} == {"tensorflow"}
    assert of_cpu["tensorflow-cpu"] == of_gpu["tensorflow"]
    assert of_cpu["apache-beam"] == locked(repository, "cpu.txt")["apache-beam"] == "2.77.0"
    assert "apache-beam" not in of_gpu
    assert not [name for name in of_cpu if name.startswith("nvidia-")]


def test_the_image_of_the_workers_starts_beams_program_of_the_locked_version(repository: Path) -> None:
    """Read as text: Dataflow needs a program at this place, of the version of the package, and root."""
    text = (repository / "Dockerfile").read_text()
    stages = dict(re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", text, re.M | re.S))
    assert list(stages) == ["beam", "base", "project", "cpu", "gpu"]
    assert f"ARG BEAM_IMAGE=apache/beam_python3.12_sdk:{locked(repository, 'cpu-image.txt')['apache-beam']}\n" in text
    assert "FROM ${BEAM_IMAGE} AS beam" in text
    assert "COPY --from=beam /opt/apache/beam /opt/apache/beam" in stages["cpu"]
    assert 'ENTRYPOINT ["/opt/apache/beam/boot"]' in stages["cpu"]
    assert "USER" not in stages["cpu"] + stages["base"]
    assert "beam" not in stages["gpu"].lower()
    # Without --target, the image is the one that earlier versions built.
    assert text.rstrip().endswith(stages["gpu"].rstrip())
    assert "USER trainer" in stages["gpu"]
