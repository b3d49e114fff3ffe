"""The folder of components has steps and nothing else: each is a signature, one import and one call."""

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
FILES = sorted(path for path in (ROOT / "components").glob("*.py") if path.name != "__init__.py")


def body_of(path: Path) -> ast.FunctionDef:
    """Return the one function of a component's file."""
    functions = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.FunctionDef)]
    assert [function.name for function in functions] == [path.stem]
    return functions[0]


def test_every_step_of_the_pipeline_has_its_file() -> None:
    of_batch = {"batch_report", "find_champion", "write_instances"}
    steps = ["compare", "deploy", "evaluate", "export", "plan", "prepare", "record", "summary"]
    assert [path.stem for path in FILES if path.stem not in of_batch] == steps
    assert [path.name for path in (ROOT / "components").iterdir() if path.is_dir() and path.name != "__pycache__"] == []


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
    assert function.body[1] is imports[0]
    names = {alias.asname or alias.name for alias in imports[0].names}
    used = [node.id for node in ast.walk(function) if isinstance(node, ast.Name) and node.id in names]
    assert sorted(used) == sorted(names)
    loops = (ast.If, ast.For, ast.While, ast.With, ast.Try, ast.FunctionDef, ast.Lambda)
    assert [node for node in ast.walk(function) if isinstance(node, loops) and node is not function] == []
