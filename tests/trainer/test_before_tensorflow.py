"""Mistakes that are found before TensorFlow is imported, whose notes would precede the line."""

import contextlib
import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.modules import call_module
from tests.trainer.conftest import SHORT_RUN


@pytest.fixture(autouse=True)
def without_tensorflow() -> Iterator[None]:
    """Let an import of TensorFlow or Keras fail in this process."""
    held = {name: sys.modules.get(name) for name in ("tensorflow", "keras")}
    sys.modules.update(dict.fromkeys(held))  # type: ignore[arg-type]
    yield
    for name, module in held.items():
        del sys.modules[name]
        if module is not None:
            sys.modules[name] = module


def refused(module: str, *arguments: str) -> str:
    done = call_module(module, *arguments)
    assert done.returncode == 2, done.stderr
    assert done.stderr.count("\n") == 1, done.stderr
    return done.stderr


@pytest.fixture
def other(digits_directory: Path, tmp_path: Path) -> Path:
    """A dataset with another fingerprint."""
    shutil.copytree(digits_directory, tmp_path / "other")
    path = tmp_path / "other" / "dataset.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"fingerprint": "f" * 64}))
    return tmp_path / "other"


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--global-batch-size=100000"], "global_batch_size=100000 is more than the "),
        (
            ['--recipe={"optimizer": {"class_name": "SGD", "config": {"gradient_accumulation_steps": 99}}}'],
            "gradient_accumulation_steps=99, but the run has ",
        ),
        (["--weights=missing.weights.h5"], "weights file 'missing.weights.h5' not found"),
        (["--max-steps=3", "--seed=3"], "seed is 0 there and 3 here"),
        (["--checkpoint-directory=/proc/x"], "it is in a folder of the system"),
    ],
)
def test_the_trainer_refuses(
    digits_directory: Path, trained_directory: Path, tmp_path: Path, arguments: list[str], message: str
) -> None:
    shutil.copytree(trained_directory, tmp_path / "run")
    # An unfinished one.
    (tmp_path / "run" / "result.json").unlink()
    given = [f"--dataset={digits_directory}", f"--checkpoint-directory={tmp_path / 'run'}", *SHORT_RUN, *arguments]
    assert message in refused("trainer.task", *given)


def test_the_trainer_refuses_a_shard_that_is_cut_off(digits_directory: Path, tmp_path: Path) -> None:
    shutil.copytree(digits_directory, tmp_path / "data")
    (shard,) = (tmp_path / "data").glob("images-train.array_record-*")
    shard.write_bytes(shard.read_bytes()[:1000])
    given = [f"--dataset={tmp_path / 'data'}", f"--checkpoint-directory={tmp_path / 'run'}"]
    assert f"shard {shard} is damaged (" in refused("trainer.task", *given)
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("module", ["trainer.evaluate", "trainer.export"])
def test_evaluation_and_export_refuse(
    digits_directory: Path, trained_directory: Path, other: Path, tmp_path: Path, module: str
) -> None:
    out = str(tmp_path / "out")
    output = [out] if module == "trainer.export" else [f"--report={out}"]
    run = f"--checkpoint-directory={trained_directory}"
    assert "was trained on dataset" in refused(module, f"--dataset={other}", run, *output)
    nothing = f"--checkpoint-directory={tmp_path / 'nothing'}"
    assert str(tmp_path / "nothing") in refused(module, f"--dataset={digits_directory}", nothing, *output)
    wrong = [out.replace("out", "other/dataset.json/x")]
    wrong = wrong if module == "trainer.export" else [f"--report={wrong[0]}"]
    assert "cannot be " in refused(module, f"--dataset={digits_directory}", run, *wrong)
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize("content", ["", "[]", "{}", '{"class_names": [], "image_size": 8}', '{"class_names": ["a"]}'])
def test_predict_refuses_a_model_without_its_metadata(tmp_path: Path, content: str) -> None:
    (tmp_path / "assets.extra").mkdir()
    (tmp_path / "assets.extra" / "model.json").write_text(content)
    with contextlib.chdir(tmp_path):
        assert "no exported model at '.'" in refused("trainer.predict", ".", "x.png")
        (tmp_path / "saved_model.pb").touch()
        assert "model" in refused("trainer.predict", ".", "x.png")
