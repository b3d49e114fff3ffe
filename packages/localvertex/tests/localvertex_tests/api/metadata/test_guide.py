"""The program of docs/experiments.md works."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from vertex_testing.server import Server


@pytest.mark.slow
def test_the_program_of_the_page(package: Path, server: Server) -> None:
    page = (package / "docs" / "experiments.md").read_text()
    (program,) = re.findall(r"^```python\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert program.count('client.init("runs"') == 1
    program = program.replace('"runs"', repr(str(server.work_dir)))
    env = os.environ | {"PYTHONWARNINGS": "ignore"}
    done = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    rows = sorted(line.split()[1:] for line in done.stdout.splitlines()[-2:])
    assert rows == [["rate-1", "0.1", "0.9", "COMPLETE"], ["rate-2", "0.2", "0.8", "COMPLETE"]]
