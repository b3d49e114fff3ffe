"""The scripts of the report as one: every module once, after what it imports, and nothing that ends the element."""

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from localvertex.show import bundle


def test_each_module_comes_once_and_after_those_that_it_imports() -> None:
    script = bundle.script()
    names = re.findall(r"^\(\(\) => \{ const exports = modules\['([^']+)'\] = \{\};$", script, re.M)
    assert names[-1] == "report.js"
    assert len(names) == len(set(names)) > 20
    seen: set[str] = set()
    for part in re.split(r"^(?=\(\(\) => \{ const exports = modules\[)", script, flags=re.M)[1:]:
        own, *imported = re.findall(r"modules\['([^']+)'\]", part)
        assert set(imported) <= seen, own
        seen.add(own)


def test_no_statement_of_a_module_is_left_and_nothing_ends_the_element() -> None:
    script = re.sub(r"/\*.*?\*/", "", bundle.script(), flags=re.S)
    assert re.findall(r"^(?:import|export)\b.*", script, re.M) == []
    assert re.findall(r"\bimport\(", script) == []
    assert re.findall(r"</script|<script|<!--|</style", bundle.script() + bundle.style(), re.I) == []


def test_every_line_of_code_of_a_module_is_in_the_script() -> None:
    """A comment that gives the type of what follows it once took a function with it."""
    script = bundle.script()
    names = re.findall(r"modules\['([^']+)'\] = \{\};$", script, re.M)
    own = [each for each in names if not each.startswith("vendor/")]
    assert len(own) > 20
    for name in own:
        is_comment = is_import = False
        for line in (bundle.FOLDER / name).read_text().splitlines():
            word = line.strip()
            is_comment = is_comment or (word.startswith("/**") and "*/" not in word)
            is_import = is_import or word.startswith(("import ", "export {"))
            is_code = not is_comment and not is_import and not word.startswith(("//", "export ", "/**"))
            if is_code:
                assert line in script, f"{name}: {line}"
            is_comment = is_comment and not word.endswith("*/")
            is_import = is_import and not word.endswith(";")


@pytest.mark.skipif(shutil.which("node") is None, reason="Node is not installed")
def test_the_script_is_javascript(tmp_path: Path) -> None:
    path = tmp_path / "script.js"
    path.write_text(bundle.script())
    done = subprocess.run(["node", "--check", str(path)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_the_licenses_of_the_packages_are_in_the_script() -> None:
    script = bundle.script()
    assert (bundle.FOLDER / "vendor" / "licenses.txt").read_text() in script
    assert "Copyright" in script


def test_the_views_of_a_server_are_not_in_a_report() -> None:
    script = bundle.script()
    for name in ("main.js", "routes.js", "runs/runs.js", "creating/create.js", "models/model.js"):
        assert f"modules['{name}']" not in script
