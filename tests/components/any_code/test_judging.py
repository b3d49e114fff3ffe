"""The step `compare` for any training code, with the registry of a server: what becomes the champion, and what not."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from components.any_code import evidence
from components.compare.promotion import Outcome
from components.registry.registry import Registry
from exact_resume.checkpoints import seal
from localvertex._base.userinput.errors import UserError
from tests.support.any_code_run import NAME, AnyCodeRun
from trainer.results import outcome
from vertex_testing.server import Server

NOTHING = Outcome("", False, "", "", "")

Make = Callable[[str], AnyCodeRun]


@pytest.fixture
def make(tmp_path: Path, server: Server, registry: Registry) -> Make:
    return lambda name: AnyCodeRun(folder=tmp_path, server=server, registry=registry, name=name)


def champion(registry: Registry) -> str:
    found = registry.champion(registry.find(NAME))
    assert found
    return found.name


def test_the_first_model_is_compared_with_nothing_and_says_so(make: Make, registry: Registry) -> None:
    run = make("1").write({"accuracy": 0.5, "notes": "text", "loss": 2})
    compared = run.compare()
    assert compared == Outcome("export", True, "", "", "")
    assert run.reason == "accuracy 0.5; there is no champion: compared with nothing"
    version = run.register(compared)
    assert champion(registry) == version
    labels = registry.get(version).labels
    assert (labels["team"], labels["promotion"], labels["run-id"]) == ("vision", "better", f"{1:0>16}")
    # Submitted again: the same version, which is not uploaded again.
    again = run.compare(deploy_endpoint="live")
    assert again == Outcome("record", True, "live", version, version)


@pytest.mark.parametrize(
    ("direction", "value", "is_better", "word"),
    [
        ("maximize", 0.6, True, "better"),
        ("maximize", 0.5, False, "equal, so the champion stays"),
        ("maximize", 0.4, False, "worse"),
        ("minimize", 0.4, True, "better"),
        ("minimize", 0.5, False, "equal, so the champion stays"),
        ("minimize", 0.6, False, "worse"),
    ],
)
def test_only_a_better_value_replaces_the_champion(
    make: Make, registry: Registry, direction: str, value: float, word: str, *, is_better: bool
) -> None:
    metric = {"maximize": "reward", "minimize": "loss"}[direction]
    first = make("1").write({metric: 0.5})
    version = first.register(first.compare(metric=metric, direction=direction))
    second = make("2").write({metric: value})
    compared = second.compare(metric=metric, direction=direction, deploy_endpoint="live")
    assert (compared.is_promoted, compared.champion) == (is_better, version)
    assert second.reason.startswith(f"{metric} {value:g} against 0.5 ({direction}): {word}; whether both")
    assert "is unknown" in second.reason
    if is_better:
        assert second.register(compared) == champion(registry) == f"{version.partition('@')[0]}@2"
    else:
        assert (compared.next, compared.deploy_endpoint) == ("", "")


@pytest.mark.parametrize(
    ("metrics", "message"),
    [
        ({"loss": 0.5}, "metric 'accuracy' is not among ['loss'] in result.json; expected a finite number"),
        ({}, "metric 'accuracy' is not among [] in result.json; expected a finite number"),
        ({"accuracy": float("nan")}, "metric 'accuracy' is nan in result.json; expected a finite number"),
        ({"accuracy": True}, "metric 'accuracy' is True in result.json; expected a finite number"),
        ({"accuracy": "0.9"}, "metric 'accuracy' is '0.9' in result.json; expected a finite number"),
        ({"accuracy": None}, "metric 'accuracy' is None in result.json; expected a finite number"),
    ],
)
def test_a_model_without_the_metric_is_refused_by_name_and_not_trained_again(
    make: Make, registry: Registry, metrics: dict[str, Any], message: str
) -> None:
    run = make("1").write(metrics)
    with pytest.raises(UserError) as caught:
        run.compare()
    assert str(caught.value).startswith(message)
    assert registry.find(NAME) == ""
    assert outcome.completion(str(run.base / "checkpoints"))["run_id"] == f"{1:0>16}"


@pytest.mark.parametrize("content", [None, "", "[]", '{"accuracy": 1}', '{"metrics": [1]}'])
def test_a_result_that_is_none_is_refused_and_does_not_count_as_finished(make: Make, content: str | None) -> None:
    run = make("1").write({})
    result = run.base / "checkpoints" / "result.json"
    result.unlink() if content is None else result.write_text(content)
    with pytest.raises(UserError, match=r"result\.json is missing or damaged"):
        run.compare()
    assert not (run.base / "checkpoints" / "completion.json").exists()


def test_a_sealed_result_that_was_edited_is_damaged(make: Make) -> None:
    run = make("1").write({})
    sealed = seal.add_seal({"metrics": {"accuracy": 0.5}})
    path = run.base / "checkpoints" / "result.json"
    path.write_text(json.dumps(sealed))
    assert run.compare().is_promoted
    path.write_text(json.dumps(sealed | {"metrics": {"accuracy": 0.9}}))
    with pytest.raises(UserError, match="is missing or damaged"):
        run.compare()


def test_a_minimum_is_the_worst_accepted_value(make: Make, registry: Registry) -> None:
    run = make("1").write({"accuracy": 0.5})
    assert run.compare(minimum_metric="0.5").is_promoted
    assert run.compare(minimum_metric="0.6") == NOTHING
    assert run.reason == "accuracy 0.5: worse than minimum_metric 0.6"
    loss = make("1").write({"loss": 0.5})
    assert loss.compare(minimum_metric="0.4", metric="loss", direction="minimize") == NOTHING
    assert registry.find(NAME) == ""


def test_without_a_name_nothing_is_compared_and_registered(make: Make, capsys: pytest.CaptureFixture[str]) -> None:
    run = make("1").write({"accuracy": 0.5})
    (run.base / "model" / "weights").unlink()
    assert run.compare(model_name="") == NOTHING
    assert "compared with nothing and not registered: model_name is empty" in capsys.readouterr().out
    with pytest.raises(UserError, match="has no model; the training code writes it to AIP_MODEL_DIR"):
        run.compare()


def test_a_champion_without_metrics_stays(make: Make, server: Server, registry: Registry) -> None:
    first = make("1").write({"accuracy": 0.1})
    version = first.register(first.compare())
    copy = Path(registry.get(version).artifact_uri) / "evaluation" / "result.json"
    copy.unlink()
    second = make("2").write({"accuracy": 0.9})
    compared = second.compare()
    assert (compared.next, compared.champion) == ("", version)
    assert second.reason.startswith("no comparison is possible: the champion's ")
    copy.write_text('{"metrics": {"loss": 0.1}}')
    assert second.compare().next == ""
    assert "the champion's metric 'accuracy' is not among ['loss']" in second.reason


def lines(answers: np.ndarray, labels: np.ndarray, *, seen: list[int] | None = None) -> list[dict[str, Any]]:
    found = [
        {"id": number, "label": int(label), "prediction": int(answer)}
        for number, (label, answer) in enumerate(zip(labels, answers, strict=True))
    ]
    return found + [{"id": number, "split": "train"} for number in seen or []]


LABELS = np.arange(200) % 2


def wrong_at(*indices: int) -> np.ndarray:
    answers = LABELS.copy()
    answers[list(indices)] ^= 1
    return answers


def test_predictions_of_the_same_examples_decide(make: Make) -> None:
    first = make("1").write({"accuracy": 0.95}, lines(wrong_at(*range(10)), LABELS))
    first.register(first.compare())
    worse = make("2").write({"accuracy": 0.85}, lines(wrong_at(*range(30)), LABELS))
    assert worse.compare().next == ""
    assert worse.reason.startswith("85.00% against 95.00% on 200 examples: worse by 10.00%")
    assert worse.reason.endswith("which of them the models have seen is unknown")
    same = make("3").write({"accuracy": 0.95}, lines(wrong_at(*range(10, 20)), LABELS))
    assert same.compare().next == ""
    assert "as good (p = 1), so the champion stays" in same.reason
    better = make("4").write({"accuracy": 0.965}, lines(wrong_at(*range(7)), LABELS))
    assert better.compare().is_promoted
    assert "96.50% against 95.00% on 200 examples: better (p = 0.25)" in better.reason
    # As the project's settings want it: only a significant lead.
    assert not better.compare(must_improve=True).is_promoted


def test_examples_that_the_new_model_has_seen_count_as_wrong(make: Make) -> None:
    first = make("1").write({"accuracy": 0.99}, lines(wrong_at(0, 1), LABELS, seen=[500]))
    first.register(first.compare())
    # Perfect only where it was trained.
    second = make("2").write({"accuracy": 1 - 3 / 160}, lines(wrong_at(0, 1, 2), LABELS, seen=[*range(50, 90)]))
    assert not second.compare().is_promoted
    assert "78.50% against 99.00% on 200 examples: worse" in second.reason
    assert second.reason.endswith("; 40 counted as wrong: no unseen prediction")


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        (lines(LABELS[:99], LABELS[:99]), "fewer than half are answered"),
        (lines(LABELS ^ 1, LABELS ^ 1), "200 of 200 examples have other labels, more than 2%"),
    ],
)
def test_without_evidence_a_model_is_registered_without_the_alias_champion(
    make: Make, registry: Registry, changed: list[dict[str, Any]], message: str
) -> None:
    first = make("1").write({"accuracy": 1}, lines(LABELS, LABELS))
    version = first.register(first.compare())
    second = make("2").write({"accuracy": 1}, changed)
    compared = second.compare()
    assert (compared.next, compared.is_promoted) == ("export", False)
    assert message in second.reason
    registered = second.register(compared)
    assert champion(registry) == version
    assert registry.get(registered).labels["promotion"] == "undecided"


def test_a_wrong_line_is_refused_by_its_number(make: Make) -> None:
    for line, message in (
        ({"label": 1, "prediction": 1}, "line 2: expected id, label and prediction"),
        ({"id": 1, "label": [1], "prediction": 1}, "line 2: expected id, label and prediction"),
        ({"id": 0, "label": 1, "prediction": 1}, "line 2: the id '0' is there twice"),
        ([], "line 2: expected id, label and prediction"),
    ):
        run = make("1").write({"accuracy": 1}, [{"id": 0, "label": 0, "prediction": 0}, line])  # type: ignore[list-item]
        with pytest.raises(UserError, match=message):
            run.compare()


def test_predictions_of_the_model_before_do_not_stay_beside_a_new_one(tmp_path: Path) -> None:
    for name, content in (("result.json", "{}"), ("predictions.jsonl", "")):
        for folder in ("checkpoints", "model/evaluation"):
            (tmp_path / folder).mkdir(parents=True, exist_ok=True)
            (tmp_path / folder / name).write_text(content)
    (tmp_path / "checkpoints" / "predictions.jsonl").unlink()
    evidence.give_to_model(str(tmp_path / "checkpoints"), str(tmp_path / "model"))
    assert [path.name for path in (tmp_path / "model" / "evaluation").iterdir()] == ["result.json"]


@pytest.mark.parametrize(
    ("answers", "message"),
    [
        (np.zeros_like(LABELS), "not better than a constant answer"),
        (np.random.default_rng(1).integers(0, 2, len(LABELS)), "not better than"),
        (np.full_like(LABELS, 7), "not better than a constant answer"),
    ],
)
def test_a_model_that_has_learnt_nothing_is_not_even_the_first_champion(make: Make, answers: Any, message: str) -> None:
    """Whatever its own figure says."""
    run = make("1").write({"accuracy": 0.99}, lines(answers, LABELS))
    assert run.compare() == NOTHING
    assert message in run.reason
    # Another metric says nothing about the predictions' classes.
    assert (
        make("2").write({"loss": 0.5}, lines(answers, LABELS)).compare(metric="loss", direction="minimize").is_promoted
    )


def test_too_few_predictions_register_a_model_without_the_alias_champion(make: Make) -> None:
    compared = make("1").write({"accuracy": 1}, lines(LABELS[:4], LABELS[:4])).compare()
    assert (compared.next, compared.is_promoted) == ("export", False)
