"""The comparison with Keras recipes: its synthetic images, its interval and its record."""

import collections
import hashlib
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from benchmarks.recipes import __main__ as recipes, generators


def files(folder: Path, **fields: Any) -> dict[str, str]:
    """Write images and return split/class/name -> SHA-256."""
    settings = {"num_images": 48, "image_size": 16, **fields}
    generators.write(generators.Settings(**settings), folder)
    paths = sorted(folder.rglob("*.png"))
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def counts(found: dict[str, str], split: str) -> list[int]:
    names = [name.split("/")[1] for name in found if name.startswith(split)]
    return sorted(collections.Counter(names).values(), reverse=True)


@pytest.mark.parametrize("task", generators.TASKS)
def test_images_follow_from_the_settings_and_no_two_are_equal(tmp_path: Path, task: str) -> None:
    first, again = (files(tmp_path / name, task=task, seed=3) for name in ("first", "again"))
    other = files(tmp_path / "other", task=task, seed=4)
    assert first == again
    assert len({*first.values(), *other.values()}) == len(first) + len(other)


def test_training_images_are_imbalanced_and_test_images_are_not(tmp_path: Path) -> None:
    found = files(tmp_path, task="shapes", seed=0, num_images=100, imbalance=8.0, label_noise=0.0)
    train, test = counts(found, "train"), counts(found, "test")
    assert sum(train) == 100
    assert train[0] / train[-1] == pytest.approx(8, rel=0.2)
    assert test == [25, 25, 25, 25]


def test_wrong_labels_are_in_the_training_images_alone_and_change_no_pixel(tmp_path: Path) -> None:
    true = files(tmp_path / "true", task="shapes", seed=0, num_images=200, label_noise=0.0)
    noisy = files(tmp_path / "noisy", task="shapes", seed=0, num_images=200, label_noise=0.3)
    assert sorted(true.values()) == sorted(noisy.values())
    moved = set(true) - set(noisy)
    assert {name.split("/")[0] for name in moved} == {"train"}
    assert len(moved) == pytest.approx(60, abs=20)


def test_the_interval_is_that_of_the_paired_t_test() -> None:
    rng = np.random.default_rng(0)
    ours, other = rng.normal(0.7, 0.05, 10), rng.normal(0.68, 0.05, 10)
    expected = stats.ttest_rel(ours, other).confidence_interval(0.95)
    found = recipes.difference(list(ours), list(other))
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))
    assert recipes.difference([0.5], [0.4]).low == float("-inf")


def test_a_training_in_the_record_is_found_after_a_kill_that_tore_the_last_line(tmp_path: Path) -> None:
    path = tmp_path / "new" / "trainings.jsonl"
    done, torn = {"side": "fit", "seed": 1}, {"side": "fit", "seed": 2}
    recipes.Record(path).add(done, score=0.5)
    path.write_text(f'{path.read_text()}{{"key": {{"side": "fi')
    record = recipes.Record(path)
    assert record.find(done) == {"key": done, "score": 0.5}
    assert record.find(torn) is None
    record.add(torn, score=0.25)
    assert recipes.Record(path).find(torn) == {"key": torn, "score": 0.25}


def test_ours_is_compared_with_the_recipe_that_is_better_on_the_mean_of_the_pairs() -> None:
    def line(side: str, seed: int, score: float) -> dict[str, Any]:
        return {"key": {"task": "glyphs", "side": side, "model": "m", "epochs": 2, "seed": seed}} | {
            "score": score,
            "cpu_seconds": 7.0,
        }

    lines = [line("fit", 0, 0.9), line("careful-fit", 0, 0.6), line("{}", 0, 0.8)]
    lines += [line("fit", 1, 0.2), line("careful-fit", 1, 0.6), line("{}", 1, 0.8)]
    [row] = recipes.rows(lines)
    assert row == "| glyphs | m, 2 epochs | `{}` | 2 | 80.0 | 55.0 | 60.0 | +20.0 [+20.0, +20.0] | 7, 7, 7 |"


def test_a_configuration_that_is_no_json_object_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", ["recipes", "--ours", "[1]"])
    with pytest.raises(SystemExit, match="2"):
        recipes.main()
    assert "not a JSON object" in capsys.readouterr().err
