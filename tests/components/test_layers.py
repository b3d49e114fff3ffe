"""The layers of the steps: nothing imports itself through others, and only a signature knows kfp."""

import ast
import subprocess
from pathlib import Path

import pytest

from tests.support.import_circles import circles

STEPS = (
    "batch_prediction/batch_report",
    "batch_prediction/find_champion",
    "batch_prediction/write_instances",
    "compare/compare",
    "evaluate",
    "export/export",
    "plan/plan",
    "prepare/prepare",
    "release/deploy",
    "release/record",
    "summary/summary",
)
"""The files of the signatures, below `components`."""


def signature(repository: Path, step: str) -> ast.FunctionDef:
    """Return the only function in the file of a step."""
    module = ast.parse((repository / "components" / f"{step}.py").read_text())
    (function,) = [statement for statement in module.body if isinstance(statement, ast.FunctionDef)]
    return function


def test_no_circle_of_imports(repository: Path) -> None:
    assert circles(repository, "components") == []


def test_only_the_files_of_steps_import_kfp(repository: Path) -> None:
    folder = repository / "components"
    found = [
        path.relative_to(folder).with_suffix("").as_posix()
        for path in sorted(folder.rglob("*.py"))
        for statement in ast.parse(path.read_text()).body
        if isinstance(statement, ast.ImportFrom) and statement.module == "kfp"
    ]
    assert found == sorted(STEPS)


@pytest.mark.parametrize("step", STEPS)
def test_a_step_is_in_the_file_of_its_name_and_imports_once(repository: Path, step: str) -> None:
    function = signature(repository, step)
    assert function.name == step.rpartition("/")[2]
    imports = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert imports == [function.body[1]]


def test_what_the_steps_call_does_not_import_kfp(repository: Path, python: str) -> None:
    statements = [ast.unparse(signature(repository, step).body[1]) for step in STEPS]
    code = "\n".join([*statements, "import sys", "print([name for name in sys.modules if name.startswith('kfp')])"])
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=repository)
    assert done.stdout.splitlines()[-1] == "[]"
