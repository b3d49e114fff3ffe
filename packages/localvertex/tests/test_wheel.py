"""An installation brings the tools and what they import; PyYAML is enough for the machine check."""

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import yaml


def test_an_installation_brings_the_tools_and_what_they_import(package: Path, tmp_path: Path) -> None:
    copy, unused = tmp_path / "copy", (".*", "build", "tests", "docs", "__pycache__", "node_modules")
    shutil.copytree(package, copy, ignore=shutil.ignore_patterns(*unused))
    build = (sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index")
    subprocess.run([*build, "--wheel-dir", tmp_path, copy], check=True)
    folder = tmp_path / "installed"
    with zipfile.ZipFile(next(tmp_path.glob("*.whl"))) as wheel:
        wheel.extractall(folder)
    names = {path.name for path in folder.iterdir() if not path.name.endswith(".dist-info")}
    assert names == {"localvertex"}
    page = Path("localvertex", "console", "page")
    shipped = {each.name for each in (package / page).rglob("*") if each.is_file()}
    kept = {each.name for each in (folder / page).rglob("*") if each.is_file()}
    assert "main.js" in kept
    assert {each for each in shipped - kept if not each.endswith(".d.ts")} == set()
    program = "import localvertex.machines.__main__ as a; a.main(['table', '--accelerator', 'NVIDIA_L4'])"
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
