"""Every list of the product's packages has all packages that exist, and no others."""

import itertools
import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

from pipelines.project.up import image_files


@pytest.fixture(scope="module")
def packages(repository: Path) -> set[str]:
    """The top-level packages of the product."""
    found = {path.parent.name for path in repository.glob("*/__init__.py")} - {"tests", "benchmarks"}
    assert "trainer" in found
    return found


@pytest.fixture(scope="module")
def tools(repository: Path) -> set[Path]:
    """The folders below packages/ that programs import."""
    return {path.parent for path in repository.glob("packages/*/*/__init__.py")}


@pytest.fixture(scope="module")
def project(repository: Path) -> dict[str, Any]:
    """The content of pyproject.toml."""
    return tomllib.loads((repository / "pyproject.toml").read_text())


def copied(repository: Path) -> set[str]:
    """Paths that the Dockerfile copies from the build context."""
    lines = re.findall(r"^COPY (?!--from)(.+) \S+$", (repository / "Dockerfile").read_text(), re.M)
    return {name for line in lines for name in line.split()}


def sent(repository: Path) -> set[str]:
    """Paths that .dockerignore lets into the build context."""
    lines = (repository / ".dockerignore").read_text().splitlines()
    assert lines[0] == "*"
    return {line.removeprefix("!") for line in lines if line.startswith("!")}


def test_the_dockerfile_copies_what_is_sent(repository: Path, packages: set[str]) -> None:
    assert copied(repository) == sent(repository)
    assert packages | {"packages"} <= sent(repository)
    assert [name for name in sent(repository) if not (repository / name).exists()] == []


def test_no_other_folder_is_sent(repository: Path, packages: set[str], tools: set[Path]) -> None:
    assert {name for name in sent(repository) if (repository / name).is_dir()} == packages | {"packages"}
    lines = (repository / ".dockerignore").read_text().splitlines()
    unsent = [line for line in lines if line.startswith("packages/")]
    assert "packages/testing" in unsent
    listed = subprocess.run(["git", "ls-files", "packages"], cwd=repository, capture_output=True, text=True, check=True)
    folders = {path.parents[-4] for path in map(Path, listed.stdout.split()) if len(path.parts) > 3}
    left = {path for path in folders if not any(path.match(line) or path.parent.match(line) for line in unsent)}
    assert {repository / path for path in left} == {path for path in tools if path.parent.name != "testing"}


def test_the_tag_of_the_image_follows_every_file_of_it(repository: Path) -> None:
    files = image_files()
    assert len(files) == len(set(files))
    assert set(files) == sent(repository) | {"Dockerfile", ".dockerignore", "cloudbuild.yaml"}


def test_mypy_ruff_and_pip_know_all_packages(
    repository: Path, project: dict[str, Any], packages: set[str], tools: set[Path]
) -> None:
    tool = project["tool"]
    checked = {name for name in tool["mypy"]["files"] if not name.endswith(".py")}
    assert checked == packages | {"benchmarks"} | {str(path.relative_to(repository)) for path in tools}
    assert set(tool["mypy"]["mypy_path"]) == {str(path.parent.relative_to(repository)) for path in tools}
    known = packages | {"cloud", "compile"} | {path.name for path in tools}
    assert set(tool["ruff"]["lint"]["isort"]["known-first-party"]) == known
    assert set(tool["setuptools"]["packages"]["find"]["include"]) == {f"{name}*" for name in packages}
    installed = re.findall(r"-e (\S+)", (repository / "Makefile").read_text())
    assert {Path(name) for name in installed} == {Path(".")} | {path.parent.relative_to(repository) for path in tools}


def test_no_package_needs_another_one_of_ours_by_name(repository: Path) -> None:
    """In an index, such a name can be anybody's."""
    paths = [repository / "pyproject.toml", *sorted(repository.glob("packages/*/pyproject.toml"))]
    projects = {path: tomllib.loads(path.read_text())["project"] for path in paths}
    names = {each["name"] for each in projects.values()}
    assert len(names) == len(paths) == 4
    for path, each in projects.items():
        wanted = [*each.get("dependencies", []), *itertools.chain(*each.get("optional-dependencies", {}).values())]
        found = {match[0] for line in wanted if (match := re.match(r"[\w.-]+", line))}
        # An extra of the root may name another one of the root: pip takes it from the folder that it installs.
        assert found & (names - {each["name"]}) == set(), path


def own_names(repository: Path) -> set[str]:
    """The names under which the repository installs itself and its packages."""
    found = {path.parent.name for path in repository.glob("packages/*/*/__init__.py")}
    projects = [repository / "pyproject.toml", *repository.glob("packages/*/pyproject.toml")]
    found |= {tomllib.loads(path.read_text())["project"]["name"] for path in projects}
    return {each.replace("_", "-") for each in found} | {"image-training"}


def test_no_text_advises_to_install_a_name_of_ours_from_an_index(repository: Path) -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=repository, capture_output=True, text=True, check=True)
    own, found, num_commands = own_names(repository), [], 0
    for name in listed.stdout.split("\0"):
        if not name.endswith((".py", ".md", ".toml", ".txt", ".js", ".html", ".j2", ".yaml", "Makefile", "Dockerfile")):
            continue
        text = (repository / name).read_text(encoding="utf-8", errors="replace")
        for match in re.finditer(r"(?:pip3?|uv|pipx) (?:pip )?install ([^`\n]*)", text):
            num_commands += 1
            words = re.findall(r"[A-Za-z0-9._/{}:+-]+", match[1])
            if own & {word.lower().replace("_", "-") for word in words} and " @ " not in match[1]:
                found.append(f"{name}: {match[0]}")
    assert num_commands > 10
    assert found == []


def locked(repository: Path, name: str) -> dict[str, str]:
    """Package -> version of a lock."""
    return dict(re.findall(r"^([a-z0-9.-]+)==([^\s;]+)", (repository / "requirements" / name).read_text(), re.M))


def test_every_lock_has_the_same_pillow_and_one_has_apache_beam(repository: Path) -> None:
    """Bytes of prepared images depend on Pillow. Beam limits the versions of other packages."""
    locks = {path.name: locked(repository, path.name) for path in (repository / "requirements").glob("*.txt")}
    assert set(locks) == {"beam.txt", "cpu.txt", "cpu-image.txt", "gpu.txt", "torch.txt"}
    # PyTorch's environment prepares no images.
    assert len({lock["pillow"] for name, lock in locks.items() if name != "torch.txt"}) == 1
    assert [name for name, lock in locks.items() if "apache-beam" in lock] == ["beam.txt"]


def test_the_images_have_the_same_packages_but_for_cuda(repository: Path) -> None:
    of_cpu, of_gpu = locked(repository, "cpu-image.txt"), locked(repository, "gpu.txt")
    assert {name for name in of_cpu.keys() & of_gpu.keys() if of_cpu[name] != of_gpu[name]} == set()
    assert {name for name in of_gpu.keys() - of_cpu.keys() if not name.startswith("nvidia-")} == {"tensorflow"}
    assert of_cpu.keys() - of_gpu.keys() == {"tensorflow-cpu"}
    assert of_cpu["tensorflow-cpu"] == of_gpu["tensorflow"]


def test_the_image_of_the_workers_starts_beams_program_of_the_locked_version(repository: Path) -> None:
    """Read as text: Dataflow needs a program at this place, of the version of the package, and root."""
    text = (repository / "Dockerfile").read_text()
    stages = dict(re.findall(r"^FROM \S+ AS (\S+)\n(.*?)(?=^FROM |\Z)", text, re.M | re.S))
    assert list(stages) == ["beam", "base", "project", "cpu", "dataflow", "gpu"]
    assert f"ARG BEAM_IMAGE=apache/beam_python3.12_sdk:{locked(repository, 'beam.txt')['apache-beam']}\n" in text
    assert "FROM ${BEAM_IMAGE} AS beam" in text
    assert "COPY --from=beam /opt/apache/beam /opt/apache/beam" in stages["dataflow"]
    assert 'ENTRYPOINT ["/opt/apache/beam/boot"]' in stages["dataflow"]
    assert "USER" not in stages["dataflow"] + stages["base"]
    # Without --target, the image is the one for GPUs.
    assert text.rstrip().endswith(stages["gpu"].rstrip())
    for name in ("cpu", "gpu"):
        assert "COPY --from=beam" not in stages[name]
        assert "USER trainer" in stages[name]
