"""The quick start of the README works literally, and shows what is really printed."""

import os
import re
import shlex
import subprocess
import sys
from pathlib import Path


def test_the_quick_start(package: Path, tmp_path: Path) -> None:
    text = (package / "README.md").read_text()
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    assert [kind for kind, _ in blocks] == ["yaml", "console", "python", "console"]
    (tmp_path / "pools.yaml").write_text(blocks[0][1])
    (tmp_path / "hello.py").write_text(blocks[2][1])
    printed = ""
    for line in (blocks[1][1] + blocks[3][1]).splitlines():
        if line.startswith("$ "):
            program, *words = shlex.split(line.removeprefix("$ "))
            assert program == "python"
            done = subprocess.run(
                [sys.executable, *words],
                cwd=tmp_path,
                env=os.environ | {"COLUMNS": "120"},
                capture_output=True,
                text=True,
            )
            assert done.returncode == ("check" in words), (line, done.stdout, done.stderr)
            printed += f"{line}\n{done.stdout}"
    assert printed.startswith(blocks[1][1])
    assert "hello you" in printed
    assert (tmp_path / "runs" / "first" / "run.html").is_file()
