"""A hyperparameter is added by editing only the files that docs/pipeline.md names."""

import json
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

PACKAGES = ("components", "pipelines", "trainer")


def add_before(line: str, *added: str) -> Callable[[str], str]:
    """Return an edit that puts lines before each line that begins with a text, with the same indentation."""

    def edit(source: str) -> str:
        found = re.search(rf"^( *){re.escape(line)}", source, re.M)
        assert found is not None, line
        block = "".join(f"{found[1]}{each}\n" for each in added)
        return f"{source[: found.start()]}{block}{source[found.start() :]}"

    return edit


EDITS: dict[str, tuple[Callable[[str], str], ...]] = {
    "trainer/config.py": (
        add_before(
            "# It must fit the 32-bit seeds",
            'label_smoothing: float = setting("How far labels are smoothed.", FRACTION, default=0.0)',
        ),
    ),
    "components/plan/plan.py": (add_before("seed: int,", "label_smoothing: float,"),),
}


def files_in_the_docs(repository: Path) -> list[str]:
    """Return the files that the docs tell one to edit."""
    page = (repository / "docs" / "pipeline.md").read_text()
    section = page.partition("\n### Adding a hyperparameter\n")[2].partition("\n#")[0]
    return re.findall(r"^\d\. `([^`]+)`:", section, re.M)


@pytest.fixture
def scratch(repository: Path, tmp_path: Path) -> Path:
    """A copy of the code without anything that git ignores."""
    for package in PACKAGES:
        shutil.copytree(repository / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copy(repository / "compile.py", tmp_path)
    return tmp_path


def test_a_hyperparameter_is_added_in_the_files_that_the_docs_name(
    repository: Path, scratch: Path, python: str
) -> None:
    named = files_in_the_docs(repository)
    assert len(named) == 2
    for name in named:
        path = scratch / name
        for edit in EDITS[name]:
            path.write_text(edit(path.read_text()))

    def run(*words: str) -> str:
        done = subprocess.run([python, *words], cwd=scratch, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        return done.stdout

    run("compile.py", "--image", f"us-docker.pkg.dev/p/r/n@sha256:{'b' * 64}")
    spec = json.loads((scratch / "build" / "image_training.json").read_text())
    parameters = spec["root"]["inputDefinitions"]["parameters"]
    assert parameters["label_smoothing"] == {
        "defaultValue": 0.0,
        "description": "How far labels are smoothed, 0 to 1.",
        "isOptional": True,
        "parameterType": "NUMBER_DOUBLE",
    }
    planned = spec["components"]["comp-plan"]["inputDefinitions"]["parameters"]
    assert planned["label_smoothing"] == {"parameterType": "NUMBER_DOUBLE"}
    # The step `plan` passes it to the trainer, whose command line has the flag.
    task = spec["components"]["comp-exit-handler-1"]["dag"]["tasks"]["plan"]
    assert "componentInputParameter" in task["inputs"]["parameters"]["label_smoothing"]
    flags = "from trainer.config import TrainConfig; print(*TrainConfig(label_smoothing=0.1).to_flags())"
    assert "--label-smoothing=0.1" in run("-c", flags).split()
    assert "--label-smoothing FLOAT" in run("-m", "trainer.task", "--help")
