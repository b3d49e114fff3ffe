"""Weights fitted to other classes: known classes keep their rows, whatever their order."""

from typing import Any

import keras
import numpy as np
import pytest

from localvertex._base.userinput.errors import UserError
from trainer.checkpoints.variables import values as values_of
from trainer.learner import class_rows, keras_internals
from trainer.models import models

HEAD = ("logits/kernel", "logits/bias")


def network(num_classes: int) -> keras.Model:
    return models.build("convnet", image_size=16, num_classes=num_classes)


def fit(old: list[str], new: list[str]) -> tuple[dict[str, Any], dict[str, Any], dict[str, Any]]:
    """Return path -> values of the trained network, of the new one before, and of the new one after."""
    trained, fresh = network(len(old)), network(len(new))
    arrays = [
        np.random.default_rng(index).normal(size=v.shape).astype(v.dtype) for index, v in enumerate(trained.variables)
    ]
    values = class_rows.fit(arrays, old, fresh.variables, new, name="convnet", image_size=16)
    paths = [variable.path for variable in fresh.variables]
    before = values_of(fresh.variables)
    return tuple(dict(zip(paths, each, strict=True)) for each in (arrays, before, values))  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["a", "b", "c"], ["a", "b", "c", "d"]),
        (["a", "b", "c", "d"], ["d", "b"]),
        (["a", "b", "c"], ["c", "x", "a"]),
        # 16 is also the number of filters of the first layer, which has no row per class.
        ([str(n) for n in range(16)], [str(n) for n in reversed(range(16))]),
        (["a"], ["b", "c"]),
    ],
)
def test_known_classes_keep_their_rows_and_new_ones_their_initial_values(old: list[str], new: list[str]) -> None:
    trained, before, after = fit(old, new)
    for path, values in after.items():
        if path in HEAD:
            for row, name in enumerate(new):
                wanted = trained[path][..., old.index(name)] if name in old else before[path][..., row]
                assert np.array_equal(values[..., row], wanted)
        elif path.endswith("seed_generator_state"):
            assert np.array_equal(values, before[path])
        else:
            assert np.array_equal(values, trained[path])


def test_the_same_classes_need_no_second_network() -> None:
    fresh = network(2)
    arrays = [array + 1 for array in values_of(fresh.variables)]
    values = class_rows.fit(arrays, ["a", "b"], fresh.variables, ["a", "b"], name="no network", image_size=16)
    for variable, array, value in zip(fresh.variables, arrays, values, strict=True):
        assert np.array_equal(array, value) is not keras_internals.is_seed(variable)


def check(arrays: class_rows.Arrays, name: str) -> None:
    fresh = models.build(name, image_size=32, num_classes=2)
    class_rows.fit(arrays, ["a", "b"], fresh.variables, ["a", "b"], name=name, image_size=32)


def test_other_shapes_are_refused() -> None:
    arrays = values_of(network(2).variables)
    with pytest.raises(UserError, match=r"logits/kernel has shape \(1024, 2\), but \(256, 2\)"):
        check(arrays, "convnet")
    with pytest.raises(UserError, match="another architecture"):
        check(arrays, "mnist-cnn")


def test_the_sentence_names_what_was_taken_and_what_was_not() -> None:
    assert class_rows.describe(["a", "b"], ["b", "a"]) == "2 of 2 classes keep their rows"
    told = class_rows.describe([f"old {n}" for n in range(7)] + ["a"], ["a", "b"])
    assert told == "1 of 2 classes keep their rows; new: b; not taken: old 0, old 1, old 2, old 3, old 4 and 2 more"
