"""The script and the command of docs/wrapper.md, as the page has them."""

import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

PAGE = Path(__file__).parents[2] / "docs/wrapper.md"


@pytest.mark.slow
def test_the_command_of_the_page(tmp_path: Path) -> None:
    text = PAGE.read_text(encoding="utf-8")
    (program,) = re.findall(r"^```python\n(.*?)^```$", text, re.M | re.S)
    (line,) = re.findall(r"^\$ (python .*?)\n```$", text, re.M | re.S)
    (tmp_path / "train.py").write_text(program)
    (tmp_path / "python").symlink_to(sys.executable)
    words = shlex.split(line.replace("\\\n", ""))
    environment = {**os.environ, "NO_GCE_CHECK": "1"}
    for printed in ("step 1000 loss", "is finished; the command is not started"):
        done = subprocess.run(
            [sys.executable if word == "python" else word for word in words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
        )
        assert done.returncode == 0, done.stderr
        assert printed in done.stdout + done.stderr
    # The script may end before the wrapper looks for a second time.
    newest, *_ = sorted((tmp_path / "RUN").glob("step-*/manifest.json"), reverse=True)
    assert set(json.loads(newest.read_text())["files"]) == {"files/step-1000.npz", "files/best.npz"}
    assert json.loads((tmp_path / "RUN/result.json").read_text())["examples"] == "unknown"


def test_the_page_names_every_option() -> None:
    shown = subprocess.run([sys.executable, "-m", "exact_resume", "--help"], capture_output=True, text=True).stdout
    options = set(re.findall(r"--[a-z-]+", shown)) - {"--help"}
    assert options - set(re.findall(r"--[a-z-]+", PAGE.read_text(encoding="utf-8"))) == set()
