"""What identifies a run, and when it counts as finished."""

import json
import re
import shutil
from pathlib import Path

from exact_resume.checkpoints import seal
from exact_resume.checkpoints.result_file import is_finished
from exact_resume.files import storage
from trainer.checkpoints.identity import run_id
from trainer.config import TrainConfig


def test_run_id_follows_from_configuration_data_and_label_only() -> None:
    first = run_id(TrainConfig(), "data", "")
    assert re.fullmatch(r"[0-9a-f]{16}", first)
    assert run_id(TrainConfig(), "data", "") == first
    others = {
        run_id(TrainConfig(seed=1), "data", ""),
        run_id(TrainConfig(), "other", ""),
        run_id(TrainConfig(), "data", "x"),
    }
    assert len({first, *others}) == 4


def test_the_demo_keeps_its_run_id() -> None:
    """The defaults of the pipeline on the digits; another run id would train finished runs again."""
    fingerprint = "ebc7b4a2d0b38bb0a33f845dbb84af3d9b9b209117da9bc2676a791a5b2104d1"
    assert run_id(TrainConfig(), fingerprint, "") == "2330eb5407f2e43e"
    assert run_id(TrainConfig(), fingerprint, "", exact=True) != run_id(TrainConfig(), fingerprint, "", exact=False)
    assert run_id(TrainConfig(), fingerprint, "", exact=False) == "2330eb5407f2e43e"


def test_a_run_without_result_is_not_finished(tmp_path: Path) -> None:
    assert not is_finished(str(tmp_path / "nowhere"))
    (tmp_path / "result.json").write_text('{"run_id": "cut sho')
    assert not is_finished(str(tmp_path))


def test_a_result_counts_only_for_its_own_run(trained_directory: Path, tmp_path: Path) -> None:
    assert is_finished(str(trained_directory))
    result = json.loads((trained_directory / "result.json").read_text())
    assert is_finished(str(trained_directory), expected_run_id=result["run_id"])
    assert not is_finished(str(trained_directory), expected_run_id="0" * 16)
    copy = tmp_path / "copy"
    shutil.copytree(trained_directory, copy)
    (copy / "result.json").write_text(json.dumps({**result, "run_id": "0" * 16}))
    assert not is_finished(str(copy))


def test_a_result_with_a_lost_best_checkpoint_does_not_count(trained_directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trained_directory, copy)
    result = seal.without(json.loads((copy / "result.json").read_text()))
    for lost, expected in ((None, True), (1, False)):
        storage.write_json(copy / "result.json", seal.add_seal({**result, "lost_best_step": lost}))
        assert is_finished(str(copy)) == expected


def test_a_result_whose_checkpoint_is_gone_does_not_count(trained_directory: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    shutil.copytree(trained_directory, copy)
    shutil.rmtree(copy / json.loads((copy / "result.json").read_text())["best_checkpoint"])
    assert not is_finished(str(copy))
