"""Rules of the console's own scripts that hold without Node: where they load from, and that values stay text."""

import json
import re
from pathlib import Path

import pytest
from localvertex_tests.console import row_types

from localvertex.show import bundle
from localvertex.show.bundle import FOLDER

SOURCES = sorted(path for path in FOLDER.rglob("*.js") if path.parent.name != "vendor")
STYLES = sorted(path for path in FOLDER.rglob("*.css") if path.parent.name not in {"ui", "vendor"})
EMBEDDED = {"graph"}
"""Classes of parts that other views place."""
MARKUP = r"innerHTML|outerHTML|insertAdjacentHTML|document\.write|srcdoc|createContextualFragment"
CODE = r"\beval\(|new Function|setTimeout\(\s*[\"'`]|javascript:"
MAX_COLUMNS, MAX_LINES = 120, 500


def named(path: Path) -> str:
    return str(path.relative_to(FOLDER))


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_every_import_is_a_file_of_the_page(path: Path) -> None:
    text = path.read_text()
    imported = re.findall(r"""(?:\bfrom|^import|\bimport\()\s*["']([^"']+)["']""", text, re.M)
    assert [each for each in imported if not (each.startswith(".") and (path.parent / each).resolve().is_file())] == []
    assert all((path.parent / each).resolve().is_relative_to(FOLDER) for each in imported)


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_no_value_becomes_markup_or_code(path: Path) -> None:
    text = path.read_text()
    assert not re.findall(MARKUP, text, re.I)
    assert not re.findall(CODE, text)
    # The policy of the page refuses styles in markup; an object sets them one by one.
    assert not re.findall(r"\bstyle=[\"']", text)
    assert not [each for each in re.findall(r"https?://[^\s\"'`]+", text) if not each.startswith("http://www.w3.org/")]


@pytest.mark.parametrize("path", SOURCES, ids=named)
def test_a_script_begins_with_what_it_is_and_is_short(path: Path) -> None:
    lines = path.read_text().splitlines()
    assert re.match(r"// [A-Z].*\.$", lines[0]), lines[0]
    assert len(lines) <= MAX_LINES
    assert [line for line in lines if len(line) > MAX_COLUMNS] == []


def test_no_type_is_implicitly_any() -> None:
    options = json.loads((row_types.FILE.parent / "tsconfig.json").read_text())["compilerOptions"]
    assert (options["checkJs"], options["strict"], options.get("noImplicitAny", True)) == (True, True, True)
    assert not [path for path in SOURCES if re.search(r"@ts-(ignore|nocheck)", path.read_text())]


def test_the_rules_find_what_they_forbid() -> None:
    for text in ("x.innerHTML = y", "html`<div dangerouslySetInnerHTML=${x} />`", "frame.srcdoc = x"):
        assert re.findall(MARKUP, text, re.I)
    for text in ("eval(x)", "new Function(x)", "setTimeout('x', 1)", "<a href='javascript:x'>"):
        assert re.findall(CODE, text)


def test_the_page_has_every_style_sheet() -> None:
    assert set(bundle.STYLES) == {named(path) for path in FOLDER.rglob("*.css")}
    assert bundle.STYLES[0] == "ui/style.css"


def test_no_rule_of_a_views_style_sheet_reaches_another_view() -> None:
    texts = {path: re.sub(r"/\*.*?\*/|\{[^{}]*\}", ",", path.read_text(), flags=re.S) for path in STYLES}
    used = {path: set(re.findall(r"\.(-?[a-zA-Z][\w-]*)", text)) for path, text in texts.items()}
    for path, text in texts.items():
        selectors = [each.strip() for each in re.split(r"[,{}]", re.sub(r"@[^{]*\{|:\w+\([^()]*\)", "", text))]
        roots = [each.split()[0] for each in selectors if each and not each.startswith(":")]
        assert [each for each in roots if "." not in each] == [], f"{path.name}: elements of all views"
        first = {each.split(".")[1].split(":")[0].split("[")[0] for each in roots}
        others = {name: other.name for other in STYLES if other != path for name in (first & used[other]) - EMBEDDED}
        assert others == {}, f"{path.name}: {others}"
