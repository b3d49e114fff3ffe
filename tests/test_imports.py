"""Imports run one way (the house's plan): who may import whom, and what stays out of a quick start."""

import ast
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

PACKAGES = ("accelerators", "components", "localvertex", "pipelines", "trainer", "compile")
MAY_IMPORT = {
    "compile": {"pipelines", "components", "accelerators"},
    "pipelines": {"components", "accelerators"},
    "components": {"trainer", "accelerators"},
    "trainer": set(),
    "localvertex": {"accelerators"},
    "accelerators": set(),
}
TENSORFLOW = {"tensorflow", "keras", "tensorflow_datasets", "array_record"}
PIPELINES_SDK = {"kfp", "google_cloud_pipeline_components"}


def imports(path: pathlib.Path) -> Iterator[tuple[str, bool]]:
    """Yield the absolute module names a file imports, and whether it does so at module level."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    nested = {
        id(node)
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield alias.name, id(node) not in nested
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module, id(node) not in nested
            for alias in node.names:
                yield f"{node.module}.{alias.name}", id(node) not in nested


def files(repository: pathlib.Path, package: str) -> list[pathlib.Path]:
    if package == "compile":
        return [repository / "compile.py"]
    return sorted((repository / package).rglob("*.py"))


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_the_design_allows(repository: pathlib.Path, package: str) -> None:
    forbidden = set(PACKAGES) - MAY_IMPORT[package] - {package}
    wrong = [
        f"{path.relative_to(repository)}: {module}"
        for path in files(repository, package)
        for module, _ in imports(path)
        if module.split(".")[0] in forbidden
    ]
    assert files(repository, package)
    assert wrong == []


@pytest.mark.parametrize("package", [name for name in PACKAGES if name != "trainer"])
def test_tensorflow_is_imported_only_under_trainer(repository: pathlib.Path, package: str) -> None:
    wrong = [
        str(path)
        for path in files(repository, package)
        for module, _ in imports(path)
        if module.split(".")[0] in TENSORFLOW
    ]
    assert wrong == []


@pytest.mark.parametrize("package", ["trainer", "accelerators"])
def test_trainer_and_accelerators_know_nothing_of_kfp_or_the_cloud(repository: pathlib.Path, package: str) -> None:
    wrong = [
        f"{path.relative_to(repository)}: {module}"
        for path in files(repository, package)
        for module, _ in imports(path)
        if module.split(".")[0] in PIPELINES_SDK or module.startswith("google.cloud")
    ]
    assert wrong == []


@pytest.mark.parametrize("package", PACKAGES)
def test_the_cloud_sdk_is_imported_only_where_a_call_is_made(repository: pathlib.Path, package: str) -> None:
    wrong = [
        str(path)
        for path in files(repository, package)
        for module, at_module_level in imports(path)
        if at_module_level and module.startswith("google.cloud")
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        ("import compile", ["tensorflow", "keras", "trainer", "localvertex", "google.cloud.aiplatform"]),
        ("import accelerators", ["yaml", "tensorflow", "kfp"]),
        ("import localvertex.__main__", ["tensorflow", "kfp", "google.cloud.aiplatform", "trainer", "pipelines"]),
        ("import trainer.config, trainer.run_identity, trainer.dataset", ["tensorflow", "keras", "kfp"]),
    ],
)
def test_a_quick_start_leaves_out_the_heavy_packages(
    repository: pathlib.Path, python: str, statement: str, absent: list[str]
) -> None:
    here = f"import sys; sys.path.insert(0, {str(repository)!r})"
    code = f"{here}; {statement}; print([m for m in {absent!r} if m in sys.modules])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=repository)
    assert done.stdout.strip() == "[]"


def test_nothing_is_read_from_the_environment_at_import(repository: pathlib.Path) -> None:
    wrong = []
    for package in PACKAGES:
        for path in files(repository, package):
            for statement in ast.parse(path.read_text(encoding="utf-8")).body:
                if isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.AsyncFunctionDef):
                    continue
                text = ast.unparse(statement)
                if "os.environ" in text or "os.getenv" in text:
                    wrong.append(f"{path.relative_to(repository)}: {text[:80]}")
    assert wrong == []
