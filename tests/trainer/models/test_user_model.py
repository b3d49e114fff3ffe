"""A user's own network: found by name, checked, part of the run's identity, evaluated and exported like the others."""

import hashlib
import json
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.modules import run_module
from trainer.checkpoints import identity as run_identity
from trainer.config import TrainConfig
from trainer.models import models, user_model
from vertex_gpu_training.userinput.errors import UserError

MODEL = """
import keras
from keras import layers

def build(*, image_size, num_classes, weights):
    images = keras.Input((image_size, image_size, 3), dtype="{dtype}")
    hidden = layers.Flatten()(layers.Rescaling(1 / 255)(images))
    outputs = layers.Dense({units}, activation={activation!r}, dtype="float32")(hidden)
    return keras.Model(images, outputs)

def number(**options):
    return 3

def failing(**options):
    raise RuntimeError("two\\nlines")

def narrow(image_size):
    return None
"""
Writer = Callable[..., str]
GOOD = {"dtype": "uint8", "units": "num_classes", "activation": "softmax"}


@pytest.fixture
def write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Writer]:
    """Write a module to a folder on Python's path; each test uses another name."""
    monkeypatch.syspath_prepend(str(tmp_path))

    def written(name: str, text: str | None = None, **changes: str) -> str:
        (tmp_path / f"{name}.py").write_text(text or MODEL.format(**{**GOOD, **changes}))
        return name

    yield written
    for path in tmp_path.glob("*.py"):
        sys.modules.pop(path.stem, None)


@pytest.mark.parametrize(
    ("number", "model", "expected"),
    [
        (1, "nowhere.net:build", "module 'nowhere' not found in"),
        (2, "{0}.net:build", "module '{0}.net' not found in"),
        (3, "{0}:make", "has no function 'make'; it has: build, failing, narrow, number"),
        (4, "{0}:number", "returned int; expected a keras.Model"),
        (
            5,
            "{0}:failing",
            "called with image_size=16, num_classes=3, weights='none', failed: RuntimeError: two lines (",
        ),
        (6, "{0}:narrow", "failed: TypeError: narrow() got an unexpected keyword argument"),
    ],
)
def test_what_is_wrong_with_the_function_is_one_line(write: Writer, number: int, model: str, expected: str) -> None:
    module = write(f"own{number}")
    with pytest.raises(UserError) as caught:
        models.build(model.format(module), image_size=16, num_classes=3)
    assert expected.format(module) in str(caught.value)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("number", "changes", "expected"),
    [
        (1, {"dtype": "float32"}, "a model float32 [None, 16, 16, 3] -> float32 [None, 3]; expected one input uint8"),
        (2, {"units": "num_classes + 1"}, "-> float32 [None, 4]; expected"),
        (3, {"activation": None}, "expected probabilities that add up to 1; end with a softmax"),
        (4, {"text": "import a_package_that_is_not_there"}, "importing made4 failed: ModuleNotFoundError"),
        (5, {"text": "1 / 0"}, "importing made5 failed: ZeroDivisionError: division by zero ("),
    ],
)
def test_what_is_wrong_with_the_network_is_one_line(
    write: Writer, number: int, changes: dict[str, str], expected: str
) -> None:
    module = write(f"made{number}", **changes)
    with pytest.raises(UserError) as caught:
        models.build(f"{module}:build", image_size=16, num_classes=3)
    assert expected in str(caught.value)
    assert "\n" not in str(caught.value)


def test_other_source_is_another_run(write: Writer) -> None:
    config = TrainConfig(model=f"{write('hashed')}:build")
    first = run_identity.run_id(config, "data", "")
    assert run_identity.run_id(config, "data", "") == first
    write("hashed", MODEL.format(**GOOD) + "# changed\n")
    assert run_identity.run_id(config, "data", "") != first
    assert "hashed" not in sys.modules
    with pytest.raises(UserError, match="module 'nowhere_at_all' not found"):
        run_identity.run_id(TrainConfig(model="nowhere_at_all:build"), "data", "")


def test_a_network_in_custom_is_known_by_the_files_of_that_folder() -> None:
    """A change elsewhere in the trainer must not start a new run."""
    folder = Path(user_model.__file__).parent / "custom"
    expected = hashlib.sha256()
    for path in sorted(folder.rglob("*.py")):
        expected.update(f"{path.relative_to(folder).as_posix()}\0{path.stat().st_size}\0".encode() + path.read_bytes())
    assert user_model.digest("trainer.models.custom.separable:build") == expected.hexdigest()


@pytest.mark.slow
def test_own_networks_are_trained_evaluated_and_refused_with_other_code(digits_directory: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(MODEL.format(**GOOD))
    run = [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / 'run'}"]
    environment = {"PYTHONPATH": ":".join([str(tmp_path), *filter(None, sys.path)])}
    done = run_module("trainer.task", *run, "--model=mine:build", "--max-steps=4", **environment)
    assert done.returncode == 0, done.stderr
    assert len(json.loads((tmp_path / "run" / "result.json").read_text())["identity"]["model_source"]) == 64
    report = f"--report={tmp_path / 'report.html'}"
    evaluated = run_module("trainer.evaluate", *run, report, **environment)
    assert evaluated.returncode == 0, evaluated.stderr
    (tmp_path / "mine.py").write_text(MODEL.format(**GOOD) + "# changed\n")
    refused = run_module("trainer.evaluate", *run, report, **environment)
    assert refused.returncode == 2
    assert "was trained with another version of 'mine:build'" in refused.stderr
