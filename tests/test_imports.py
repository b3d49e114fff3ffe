"""The layers: what each package may import, how large a folder is, and what is not imported at start-up."""

import ast
import functools
import graphlib
import pathlib
import subprocess
from collections.abc import Iterator

import pytest

COMPILED, USER_INPUT, LINUX = "localvertex._base.compiled", "localvertex._base.userinput", "localvertex._base.linux"
KINDS, MACHINES, USAGE = "localvertex._base.kinds", "localvertex.machines", "localvertex._base.usage"
STEP_ENDPOINT = "localvertex._base.step_endpoint"
MAY_IMPORT = {
    "compile": {"pipelines", "components", MACHINES, USER_INPUT},
    "cloud": {"pipelines", USER_INPUT},
    "pipelines": {"components", "trainer", "exact_resume", "localvertex", MACHINES, COMPILED, USER_INPUT},
    "components": {"trainer", "exact_resume", MACHINES, STEP_ENDPOINT, USAGE, USER_INPUT},
    "trainer": {"exact_resume", KINDS, USER_INPUT, LINUX},
    "exact_resume": set(),
    "localvertex": {MACHINES, COMPILED, KINDS, STEP_ENDPOINT, USAGE, USER_INPUT, LINUX},
    MACHINES: {COMPILED, USER_INPUT},
    COMPILED: {USER_INPUT},
    KINDS: {USER_INPUT},
    STEP_ENDPOINT: {USER_INPUT},
    USAGE: set(),
    USER_INPUT: set(),
    LINUX: set(),
}
"""What each package may import besides itself, from the top layer to the lowest."""
PACKAGES = tuple(MAY_IMPORT)
PLACES = {"exact_resume": "packages/exact_resume", "localvertex": "packages/localvertex"}
"""Where an import package is that is not at the root."""
USES_TENSORFLOW = {"trainer"}
KNOWS_NO_CLOUD = ("trainer", "exact_resume", MACHINES, COMPILED, USER_INPUT)
MAX_ENTRIES = 25
LIST = "from localvertex.__main__ import main; main(['list', '--work-dir', 'no-such-folder'])"
TENSORFLOW = {"tensorflow", "keras", "tensorflow_datasets", "array_record"}
BUCKETS = {"bucket.py", "bucket_client.py", "bucket_errors.py", "bucket_upload.py"}
"""The files of `exact_resume/files` that know google-cloud-storage, and nothing else of the cloud."""
DATAFLOW = "trainer/data/preparing/dataflow/service.py"
"""The one file of `trainer` that knows Dataflow's API."""
BEAM = ("trainer/data/preparing/engines/", "trainer/data/preparing/dataflow/")
PIPELINES_SDK = {"kfp", "google_cloud_pipeline_components"}


@functools.cache
def imports(path: pathlib.Path) -> tuple[tuple[str, bool], ...]:
    """Return the absolute module names a file imports, and whether it does so at module level."""
    return tuple(_imports(ast.parse(path.read_text(encoding="utf-8"))))


def _imports(tree: ast.Module) -> Iterator[tuple[str, bool]]:
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


def folder_of(repository: pathlib.Path, package: str) -> pathlib.Path:
    return repository.joinpath(PLACES.get(package.split(".")[0], "."), *package.split("."))


def files(repository: pathlib.Path, package: str) -> list[pathlib.Path]:
    place = folder_of(repository, package)
    file = place.with_name(f"{place.name}.py")
    found = [file] if file.exists() else sorted(place.rglob("*.py"))
    return [path for path in found if owner(module_of(repository, path)) in (package, None)]


def owner(module: str) -> str | None:
    """Return the package that a module belongs to; `localvertex.machines` is not `localvertex`."""
    found = max((name for name in PACKAGES if f"{module}.".startswith(f"{name}.")), key=len, default=None)
    # Beside the named ones the ground floor has small modules that all may import.
    return None if found == "localvertex" and module.startswith("localvertex._base") else found


def module_of(repository: pathlib.Path, path: pathlib.Path) -> str:
    """Return the name under which a file is imported."""
    parts = path.relative_to(repository).with_suffix("").parts
    return ".".join(parts[2:] if parts[0] == "packages" else parts).removesuffix(".__init__")


def folders(repository: pathlib.Path) -> list[pathlib.Path]:
    """Every folder of the product that contains code or data."""
    return sorted(
        {
            path.parent
            for package in PACKAGES
            for path in folder_of(repository, package).rglob("*")
            if path.is_file() and path.parent.name != "__pycache__"
        }
    )


def graph(repository: pathlib.Path) -> dict[str, set[str]]:
    """Return module -> modules that it imports, inside functions too."""
    paths = {module_of(repository, path): path for package in PACKAGES for path in files(repository, package)}
    return {name: modules(path, set(paths)) - {name} for name, path in paths.items()}


def modules(path: pathlib.Path, known: set[str]) -> set[str]:
    """Return the known modules that a file imports; of `from package import module`, the module and not the package."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = {f"{node.module}.{alias.name}" for alias in node.names}
            found |= names if names <= known else {node.module, *names}
    return found & known


@pytest.mark.parametrize("package", PACKAGES)
def test_a_package_imports_only_what_the_design_allows(repository: pathlib.Path, package: str) -> None:
    wrong = [
        f"{path.relative_to(repository)}: {module}"
        for path in files(repository, package)
        for module, _ in imports(path)
        if owner(module) not in {None, package, *MAY_IMPORT[package]}
    ]
    assert files(repository, package)
    assert wrong == []


@pytest.mark.parametrize("package", [name for name in PACKAGES if name not in USES_TENSORFLOW])
def test_tensorflow_is_imported_only_under_trainer(repository: pathlib.Path, package: str) -> None:
    wrong = [
        str(path)
        for path in files(repository, package)
        for module, _ in imports(path)
        if module.split(".")[0] in TENSORFLOW
    ]
    assert wrong == []


@pytest.mark.parametrize("package", KNOWS_NO_CLOUD)
def test_the_lower_layers_do_not_import_kfp_or_the_cloud(repository: pathlib.Path, package: str) -> None:
    wrong = [
        f"{path.relative_to(repository)}: {module}"
        for path in files(repository, package)
        for module, _ in imports(path)
        if module.split(".")[0] in PIPELINES_SDK or module.startswith("google.cloud")
        if not (package == "exact_resume" and path.name in BUCKETS and module.startswith("google.cloud.storage"))
        if not path.as_posix().endswith(DATAFLOW)
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


@pytest.mark.parametrize("package", PACKAGES)
def test_apache_beam_is_imported_only_by_the_engines(repository: pathlib.Path, package: str) -> None:
    """At module level by none: a step without Beam starts no slower."""
    wrong = [
        f"{path.relative_to(repository)}: {module}"
        for path in files(repository, package)
        for module, at_module_level in imports(path)
        if module.split(".")[0] == "apache_beam"
        if at_module_level or not path.relative_to(repository).as_posix().startswith(BEAM)
    ]
    assert wrong == []


@pytest.mark.parametrize(
    ("statement", "absent"),
    [
        (
            "import compile",
            ["tensorflow", "keras", "numpy", "trainer.data.dataset", "localvertex.runs", "google.cloud.aiplatform"],
        ),
        (
            "import localvertex.machines.__main__",
            ["yaml", "tensorflow", "kfp", "localvertex.values", "localvertex.runs"],
        ),
        ("import localvertex.__main__", ["tensorflow", "kfp", "google.cloud.aiplatform", "trainer", "pipelines"]),
        ("import localvertex.runs", ["cel", "prompt_toolkit", "jinja2", "localvertex.show.report"]),
        (LIST, ["cel", "localvertex.runner.engine", "localvertex.jobs", "localvertex.executors"]),
        ("import trainer.config, trainer.checkpoints.identity, trainer.data.dataset", ["tensorflow", "keras", "kfp"]),
    ],
)
def test_a_quick_start_leaves_out_the_heavy_packages(
    repository: pathlib.Path, python: str, statement: str, absent: list[str]
) -> None:
    here = f"import sys; sys.path.insert(0, {str(repository)!r})"
    code = f"{here}; {statement}; print([m for m in {absent!r} if m in sys.modules])"
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=repository)
    assert done.stdout.splitlines()[-1] == "[]"


def test_no_file_imports_itself_through_others(repository: pathlib.Path) -> None:
    try:
        graphlib.TopologicalSorter(graph(repository)).prepare()
    except graphlib.CycleError as circle:
        pytest.fail(" imports ".join(reversed(circle.args[1])))


def test_no_folder_has_too_many_entries(repository: pathlib.Path) -> None:
    full = {}
    for folder in folders(repository):
        entries = [entry.name for entry in folder.iterdir() if not entry.name.startswith("__")]
        if len(entries) > MAX_ENTRIES:
            full[str(folder.relative_to(repository))] = len(entries)
    assert full == {}


def test_no_file_repeats_the_name_of_its_folder(repository: pathlib.Path) -> None:
    wrong = [
        str(path.relative_to(repository))
        for folder in folders(repository)
        for path in folder.iterdir()
        if path.name.startswith((f"{folder.name}_", f"{folder.name.removesuffix('s')}_"))
    ]
    assert wrong == []


def test_every_package_states_what_is_in_it(repository: pathlib.Path) -> None:
    silent = []
    for folder in folders(repository):
        if any(folder.glob("*.py")):
            text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text(encoding="utf-8"))) or ""
            if not text.partition("\n")[0].endswith("."):
                silent.append(str(folder.relative_to(repository)))
    assert silent == []


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
