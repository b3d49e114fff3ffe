"""Only Linux has these calls and files: each package has one module for them, and everything else asks it."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

PRODUCT = (
    "compile.py",
    "cloud.py",
    "components",
    "pipelines",
    "trainer",
    "packages/exact_resume/exact_resume",
    "packages/localvertex/localvertex",
)
# The last one is a text that replicas of Vertex AI run, and imports nothing of the package.
LINUX = {
    "packages/exact_resume/exact_resume/files/linux.py",
    "packages/localvertex/localvertex/_base/linux.py",
    "packages/localvertex/localvertex/probe/program.py",
}
NAMES = {"prctl", "sched_getaffinity", "pidfd_open", "SO_BINDTODEVICE", "sys.platform", "platform.system", "os.uname"}
TEXTS = ("/proc/", "/sys/", "prctl", "pidfd", "bwrap", "sched_getaffinity")


def used_in(tree: ast.AST) -> Iterator[str]:
    """Yield what only Linux has in the code of a file: names and texts, but not the texts that are docstrings."""
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and not NAMES.isdisjoint({node.attr, ast.unparse(node)}):
            yield ast.unparse(node)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in documented:
            yield from (text for text in TEXTS if text in node.value)
        elif isinstance(node, ast.ImportFrom) and node.module in ("sys", "platform", "os"):
            yield from (each.name for each in node.names if {each.name, f"{node.module}.{each.name}"} & NAMES)


def test_what_only_linux_has_is_in_one_module_of_each_package(repository: Path) -> None:
    found: dict[str, list[str]] = {}
    for name in PRODUCT:
        place = repository / name
        for path in [place] if place.is_file() else sorted(place.rglob("*.py")):
            if used := sorted(set(used_in(ast.parse(path.read_text(encoding="utf-8"))))):
                found[str(path.relative_to(repository))] = used
    assert {path: used for path, used in found.items() if path not in LINUX} == {}
    assert set(found) == LINUX


@pytest.mark.parametrize(
    "code",
    [
        "open('/proc/self/stat')",
        "open(f'/proc/{pid}/stat')",
        "ctypes.CDLL(None).prctl(1)",
        "if sys.platform == 'linux': pass",
        "from sys import platform",
        "PATH = '/sys/fs/cgroup'\n'''Documented.'''",
    ],
)
def test_each_way_of_using_it_is_found(code: str) -> None:
    assert list(used_in(ast.parse(code)))
    assert not list(used_in(ast.parse("'''/proc/self/stat, bwrap(1) and prctl.'''")))
