"""The commands and programs of docs/serve.md work."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from vertex_testing.server import Server


@pytest.mark.slow
def test_the_guide_works_from_top_to_bottom(
    package: Path, start_server: Callable[..., Server], tmp_path: Path, command: Any
) -> None:
    guide = (package / "docs" / "serve.md").read_text()
    hello, client = re.findall(r"^```python\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    (lines,) = re.findall(r"^```sh\n(.*?)^```$", guide, re.MULTILINE | re.DOTALL)
    compiling, serving, asking, listing = lines.splitlines()
    # The guide's port may be in use where the test runs.
    assert serving == "python -m localvertex serve --port 8700"
    start_server()
    (tmp_path / "hello.py").write_text(hello)
    (tmp_path / "client.py").write_text(client)
    for line in (compiling, asking):
        words = [sys.executable, *line.split()[1:]]
        env = os.environ | {"PYTHONWARNINGS": "ignore"}
        done = subprocess.run(words, cwd=tmp_path, env=env, capture_output=True, text=True, timeout=300)
        assert done.returncode == 0, done.stderr
    assert "\nPIPELINE_STATE_SUCCEEDED\n" in done.stdout
    assert re.search(r"^ACTIVE 20\d\d-.* 0[12]:00:00\+00:00$", done.stdout, re.MULTILINE)
    assert re.search(r"^hello-\d+ +SUCCEEDED", command(*listing.split()[3:]).stdout, re.MULTILINE)
