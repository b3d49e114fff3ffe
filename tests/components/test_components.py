"""A step's file is named like it and has its signature, one import and one call; what it calls knows no kfp."""

import ast
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FOLDER = ROOT / "components"
FILES = sorted(
    FOLDER / f"{step}.py"
    for step in (
        "any_code/compare",
        "any_code/deploy",
        "any_code/export",
        "any_code/plan",
        "any_code/record",
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
        "train/train",
    )
)


def body_of(path: Path) -> ast.FunctionDef:
    """Return the one function of a component's file."""
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert [function.name for function in functions] == [path.stem]
    return functions[0]


def test_every_step_of_the_pipelines_has_its_file() -> None:
    assert [path for path in sorted(FOLDER.rglob("*.py")) if "\n@dsl.component(" in path.read_text()] == FILES


def test_what_the_steps_call_does_not_import_kfp(python: str) -> None:
    imports = [ast.unparse(body_of(path).body[1]) for path in FILES]
    code = "\n".join([*imports, "import sys", "print([name for name in sys.modules if name.startswith('kfp')])"])
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout.splitlines()[-1] == "[]"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_file_has_a_component_and_nothing_else(path: Path) -> None:
    tree = ast.parse(path.read_text())
    kinds = [type(node) for node in tree.body if not isinstance(node, ast.ImportFrom)]
    assert kinds == [ast.Expr, ast.FunctionDef]
    (decorator,) = body_of(path).decorator_list
    assert ast.unparse(decorator) == "dsl.component(base_image=PLACEHOLDER_IMAGE, install_kfp_package=False)"


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_a_body_has_one_import_and_calls_what_it_imported_once(path: Path) -> None:
    function = body_of(path)
    imports = [node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom)]
    assert len(imports) == 1
    assert isinstance(imports[0], ast.ImportFrom)
    assert ast.get_docstring(function)
    # Some hand on all inputs, which they take before the import adds a name.
    assert imports[0] is function.body[1 if "dict(locals())" not in path.read_text() else 2]
    names = {alias.asname or alias.name for alias in imports[0].names}
    used = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in names]
    assert sorted(used) == sorted(names)
    loops = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef, ast.Lambda)
    assert [node for node in ast.walk(function) if isinstance(node, loops) and node is not function] == []
