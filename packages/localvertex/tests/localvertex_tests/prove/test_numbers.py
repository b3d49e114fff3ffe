"""Numbers are read from the lines that trainings print, and what only looks like one is left out."""

import numpy as np
import pytest

from localvertex._base.userinput.errors import UserError
from localvertex.prove.numbers import Point, is_measure, pattern, read_log


def read(*lines: str, patterns: tuple[str, ...] = ()) -> list[Point]:
    return list(read_log("replica", lines, [pattern(each) for each in patterns]))


def values(line: str) -> dict[str, object]:
    found = {each.name.rpartition("|")[2]: each.value for each in read(line)}
    return {name: value if isinstance(value, str) else np.ravel(value).tolist() for name, value in found.items()}


@pytest.mark.parametrize(
    ("line", "key", "expected"),
    [
        ("epoch 3 step 40 loss=0.53, lr 1e-3", (3, 40), {"loss": [0.53], "lr": [0.001]}),
        ("Epoch 3/10 - loss: 0.53 - val_acc: 0.9 [00:01<00:02, 25.3it/s]", (3,), {"loss": [0.53], "val_acc": [0.9]}),
        ('{"step": 40, "loss": 0.5, "time": 12.1, "eta": 3}', (40,), {"loss": [0.5]}),
        ("2024-01-01 12:00:00,123 INFO step=40 loss=nan", (40,), {"loss": [float("nan")]}),
        ("train[12345] INFO 2026-11-28 16:04:33 step 3 loss 0.5", (3,), {"loss": [0.5]}),
        ("Nov 28 16:04:33 host-1 train[17]: step 3 loss 0.5", (3,), {"loss": [0.5]}),
        ("I1128 16:04:33.123456 Process-17: step 3 loss 0.5", (3,), {"loss": [0.5]}),
        ("2026-11-28T16:04:33Z step 3 loss(0.5)", (3,), {"loss": [0.5]}),
        ("step 3 examples 3 5 9", (3,), {"examples": [3, 5, 9]}),
        ("step 4 train loss 0.5, test loss 0.6", (4,), {"loss": [0.5], "loss 1": [0.6]}),
        ("final accuracy: 93.1%", (), {"accuracy": [93.1]}),
        ("step 1,200: loss 0.5", (1200,), {"loss": [0.5]}),
        ("\x1b[1mstep 3\x1b[0m \x1b[32mloss\x1b[0m: 5e-3", (3,), {"loss": [0.005]}),
        ("100%|████| 30/30 [00:03<00:00,  8.2it/s, loss=0.5]", (), {"loss": [0.5]}),
        (" 10%|█   | 3/30 [00:00<00:03,  8.2it/s, loss=9]step 10 loss=0.5", (10,), {"loss": [0.5]}),
        ("16/16 \x1b[32m━━━━\x1b[0m 1s 9ms/step - loss: 0.5", (), {"loss": [0.5]}),
        ("[3/10] loss 0.5", (), {"loss": [0.5]}),
        ('{"step": 3, "loss": -Infinity}', (3,), {"loss": [float("-inf")]}),
        ("b0a1c2d3e4f5a6b7c8d9e0f1a2b3c4d5", (), {"digest 0": "b0a1c2d3e4f5a6b7c8d9e0f1a2b3c4d5"}),
    ],
)
def test_a_line(line: str, key: tuple[float, ...], expected: dict[str, object]) -> None:
    assert str(values(line)) == str(expected)
    assert {each.key for each in read(line)} == {key}


@pytest.mark.parametrize(
    "line",
    [
        "took 3.2s, 25 it/s",
        "done in 0.5 s at 3 MB/s",
        "using 12 GiB",
        "pid=123 elapsed: 4.5",
        "resumed from loss 0.5",
        "saved model, accuracy 0.9",
        "v1.2.3",
        " 10%|█   | 3/30 [00:00<00:03,  8.2it/s, loss=9]",
        "1/16 \x1b[32m━━\x1b[0m 1s 9ms/step - loss: 0.5",
        "3/16 [==>.....] - ETA: 0s - loss: 0.5",
    ],
)
def test_a_line_without_a_value_of_a_training(line: str) -> None:
    assert read(line) == []


def test_a_process_begins_after_each_start() -> None:
    found = read("step 1 loss 3", "--- start 2 ---", "step 1 loss 3", "--- start 3 ---", "step 2 loss 2")
    assert [each.process for each in found] == [0, 1, 2]
    assert len({each.name for each in found}) == 1


def test_the_last_of_two_full_bars_counts() -> None:
    bar = "16/16 ━━━━ 1s 9ms/step - loss: 0.5"
    for lines in ([f"{bar} - val_loss: 0.6"], [bar, f"{bar} - val_loss: 0.6"], [f"\r{bar}\r{bar} - val_loss: 0.6"]):
        found = [each.name.rpartition("|")[2] for each in read("Epoch 1/2", *lines, "Epoch 2/2", *lines)]
        assert found == ["loss", "val_loss"] * 2


def test_a_pattern_of_the_user() -> None:
    found = read("the loss is  3.5 after 40 steps, x=1", "x=2", patterns=("loss is {loss} after {step} steps",))
    assert [(each.name, each.key, each.value.tolist()) for each in found] == [("replica||loss", (40,), [3.5])]


@pytest.mark.parametrize("text", ["loss", "", "{loss}{step}", "{a} and {a}", "{1} x", "{} x", "{loss", "(a+)+$"])
def test_what_is_no_pattern_is_refused(text: str) -> None:
    with pytest.raises(UserError, match="expected a part of a line with names"):
        pattern(text)


HOSTILE = (
    "a" * 9000,
    " " * 9000,
    "a 1" * 3000,
    "0" * 9000,
    "a=" * 4000,
    "a.a." * 2000,
    "1 ," * 3000,
    "a " + "1 " * 4000,
    "1/2 [00:" * 1000,
    "1/2 " * 2000,
)


@pytest.mark.parametrize("line", HOSTILE, ids=range(len(HOSTILE)))
def test_no_line_takes_long(line: str) -> None:
    # With a quadratic pattern this test does not end before its time limit.
    assert len(read(*[line] * 10)) <= 20_000
    assert read(*[line] * 10, patterns=("a {x} a {y} a", "b {x} c")) == []


def test_a_number_is_known_by_its_words_whatever_it_is() -> None:
    assert len({point.name for text in ("0.5", "-1e-9", "inf", "-inf", "NaN") for point in read(f"loss {text}")}) == 1


@pytest.mark.parametrize(
    "name", ["seconds_per_step", "wall_time", "num_restarts", "pid", "images/sec", "train_runtime"]
)
def test_a_measure(name: str) -> None:
    assert is_measure(name)


@pytest.mark.parametrize("name", ["loss", "learning_rate", "val_accuracy", "weights", "grad_norm", "min_val_loss"])
def test_a_value_of_a_training(name: str) -> None:
    assert not is_measure(name)
