"""`make demo`: a wrong source ends it before anything is compiled, and it prints the one command that it runs."""

import os
import pathlib
import shlex
import subprocess

import numpy as np
import pytest
from PIL import Image

from components.names import model_name_for
from pipelines.commands.demo import main
from trainer.config import TrainConfig
from vertex_testing.in_process import call

OTHERS = ("folder", "manifest (.csv, .jsonl or .json)", "tfds:NAME", "digits")


@pytest.fixture
def photos(tmp_path: pathlib.Path) -> pathlib.Path:
    """Two classes in a folder whose name a shell would split."""
    for number, name in enumerate(("falling", "rising")):
        folder = tmp_path / 'Anna\'s "best" $photos' / name
        folder.mkdir(parents=True)
        Image.fromarray(np.full((8, 8, 3), 99 * number, np.uint8)).save(folder / "1.png")
    return folder.parent


@pytest.mark.parametrize("source", ["my/photos", "notes.txt"])
def test_a_wrong_source_is_refused_before_anything_is_compiled(tmp_path: pathlib.Path, source: str) -> None:
    (tmp_path / "notes.txt").write_text("not a manifest")
    done = call(main, [source], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    (line,) = done.stderr.splitlines()
    assert repr(source) in line
    assert all(text in line for text in OTHERS)
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


@pytest.mark.parametrize("given", ["epochs", "epochs='3", "=3"])
def test_parameters_that_are_none_are_refused(photos: pathlib.Path, given: str) -> None:
    done = call(main, ["digits", "--parameters", given], cwd=photos)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("error: PARAMETERS")


def test_a_source_among_the_parameters_is_a_source(tmp_path: pathlib.Path) -> None:
    done = call(main, ["digits", "--parameters", "source=my/photos"], cwd=tmp_path)
    assert (done.returncode, done.stdout) == (2, "")
    assert "'my/photos'" in done.stderr


def parameters(line: str) -> dict[str, str]:
    """The parameters of a printed command."""
    words = shlex.split(line)
    return dict(words[index + 1].split("=", 1) for index, word in enumerate(words) if word == "--parameter")


@pytest.mark.usefixtures("build_folder")
def test_the_printed_command_has_the_parameters_and_can_be_repeated(
    repository: pathlib.Path, photos: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    # The run itself refuses the last parameter.
    given = "epochs=3 model=convnet recipe='{\"optimizer\": {}}' colour=blue"
    source = os.path.relpath(photos, repository)
    # A dollar sign is make's own.
    words = ["make", "demo", f"SOURCE={source.replace('$', '$$')}", f"PARAMETERS={given}", f"WORK_DIR={tmp_path}/runs"]
    done = subprocess.run(words, cwd=repository, capture_output=True, text=True)
    assert "no parameter 'colour'" in done.stderr.splitlines()[0]
    command, *rest = done.stdout.splitlines()
    assert rest == [""]
    assert command.startswith(".venv/bin/python -m localvertex run build/image_training.json ")
    assert parameters(command) == {
        "source": str(photos),
        "model_name": model_name_for(str(photos)),
        "minimum_score": "0",
        "image_size": "96",
        "global_batch_size": "16",
        "model": "convnet",
        "epochs": "3",
        "recipe": '{"optimizer": {}}',
        "colour": "blue",
    }
    again = subprocess.run(["sh", "-c", command], cwd=repository, capture_output=True, text=True)
    assert (again.returncode, again.stderr) == (2, "".join(done.stderr.splitlines(keepends=True)[:1]))


def test_images_are_not_mirrored_unless_asked_for() -> None:
    # The demo leaves it at the default.
    assert TrainConfig().augment in ("none", "shift")
