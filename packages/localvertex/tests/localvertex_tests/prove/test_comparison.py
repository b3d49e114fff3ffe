"""What is equal, what is noise and what is different; a right training is never accused."""

from collections.abc import Callable

import numpy as np
import pytest

from localvertex.prove.comparison import Judgement, compare
from localvertex.prove.numbers import Point, read_log
from localvertex.prove.outputs import Observation


def run(*lines: str, **arrays: object) -> Observation:
    """Return what a run with this log and these arrays of its model has left."""
    found: Observation = {}
    for point in read_log("replica", lines, []):
        found.setdefault(point.name, []).append(point)
    for name, value in arrays.items():
        full = f"output/model/w.npz|{name}"
        found[full] = [Point(name=full, value=value if isinstance(value, str) else np.asarray(value))]
    return found


def steps(
    *numbers: int, change: Callable[[int], float] = lambda step: 0.0, every: str = "step {} loss={:.6f}"
) -> list[str]:
    return [every.format(step, 1 / step + change(step)) for step in numbers]


START = "--- start 2 ---"
UNREAD_MODEL = "output/model/w.npz model: 'sha256 b' instead of 'sha256 a'"
WHOLE = run(*steps(*range(1, 21)), "generation=1")


def resumed(*lines: str) -> Observation:
    """Return a run that was killed after step 12, and printed these lines then."""
    return run(*steps(*range(1, 13)), START, *lines)


@pytest.mark.parametrize(
    "found",
    [
        resumed(*steps(*range(11, 21))),
        resumed(*steps(*range(13, 21))),
        resumed("resumed at step 10 with loss 7.0", *steps(*range(11, 21))),
        resumed(*steps(11, 14, 17, 20)),
        resumed(*steps(*range(14, 21))),
        resumed(*steps(*range(11, 20))),
        resumed(*steps(*range(11, 21)), "pid=17 took 3 s, restarts: 1"),
        resumed(*steps(*range(11, 21)), "generation=2"),
        resumed("step 11 best loss is 0.3", *steps(*range(12, 21))),
    ],
    ids=range(9),
)
def test_a_right_training_is_not_accused(found: Observation) -> None:
    result = compare([WHOLE, WHOLE], found)
    assert result.verdict is Judgement.EQUAL, result


def test_every_seventh_step_from_where_a_process_began() -> None:
    whole = run(*steps(*range(1, 26, 7)))
    # Not one step is in both logs.
    assert compare([whole, whole], run(*steps(1, 8), START, *steps(11, 18, 25))).verdict is Judgement.CANNOT_BE_JUDGED
    assert compare([whole, whole], run(*steps(1, 8), START, *steps(11, 18, 25, 32))).verdict is Judgement.DIFFERENT


@pytest.mark.parametrize(
    "found",
    [
        resumed(*steps(*range(11, 21), change=lambda step: 1e-3)),
        resumed(*steps(*range(11, 21), change=lambda step: 1e-3 * (step == 20))),
        resumed(*steps(*range(11, 17))),
        resumed(*steps(*range(11, 31))),
        run(*steps(*range(1, 13))),
    ],
    ids=range(5),
)
def test_another_training_is_different(found: Observation) -> None:
    assert compare([WHOLE, WHOLE], found).verdict is Judgement.DIFFERENT


def test_equal_is_not_said_of_what_was_not_compared() -> None:
    before = run(*steps(*range(1, 13)), "pid 17", START, "done")
    nothing = run("hello", START, "hello")
    assert compare([nothing, nothing], nothing).verdict is Judgement.CANNOT_BE_JUDGED
    assert compare([WHOLE, WHOLE], run("hello")).verdict is Judgement.CANNOT_BE_JUDGED
    own = run("step 1 loss=3")
    assert compare([own, own], run(START, "hello")).verdict is Judgement.CANNOT_BE_JUDGED
    # The values before the restart say nothing about it.
    assert compare([WHOLE, WHOLE], before | {}).verdict is Judgement.DIFFERENT
    pickles = [run(model=f"sha256 {letter}") for letter in "aab"]
    result = compare(pickles[:2], pickles[2])
    assert (result.verdict, result.not_compared) == (Judgement.CANNOT_BE_JUDGED, [UNREAD_MODEL])
    assert compare(pickles[:2], pickles[0]).verdict is Judgement.EQUAL


def noisy(seed: int, size: float = 1e-3, bias: float = 0.0) -> Observation:
    draw = np.random.default_rng(seed)
    lines = steps(*range(1, 61), change=lambda step: size * draw.normal() + bias * (step > 30))
    weights = np.arange(4.0) + size * draw.normal(size=4) + bias
    return run(*lines[:35], *([START] if seed > 4 else []), *lines[30:], w=weights)


@pytest.mark.parametrize("seed", range(5, 12))
def test_noise_is_not_accused_and_more_than_noise_is(seed: int) -> None:
    references = [noisy(each) for each in range(5)]
    assert compare(references, noisy(seed)).verdict is Judgement.WITHIN_NOISE
    assert compare(references, noisy(seed, bias=0.1)).verdict is Judgement.DIFFERENT


def test_what_differs_between_undisturbed_runs_and_is_of_no_training_is_not_compared() -> None:
    runs = [run(f"step 1 loss=3 offset={at}", f"step 2 loss=2 offset={at}") for at in (5, 6, 90)]
    result = compare(runs[:2], runs[2])
    assert (result.verdict, result.num_compared) == (Judgement.EQUAL, 2)


def test_rounding_beside_an_infinity_is_rounding() -> None:
    assert compare([run(w=[np.inf, 1.0])] * 2, run(w=[np.inf, 2.0])).verdict is Judgement.DIFFERENT


def test_an_array_of_another_shape_is_different() -> None:
    assert compare([run(w=[1.0, 2.0], v=[1.0])] * 2, run(w=[1.0], v=[1.0])).verdict is Judgement.DIFFERENT


def test_a_pattern_may_find_a_value_without_its_step() -> None:
    name = "replica||loss"
    keys: list[tuple[float, ...]] = [(), (1,), (2,), (3,)]
    whole = {name: [Point(name=name, key=key, value=np.array(1.0)) for key in keys]}
    assert compare([whole, whole], whole).verdict is Judgement.EQUAL
    last = {name: whole[name][::-1]}
    assert compare([last, last], last).verdict is Judgement.EQUAL


def test_one_mean_over_the_restart_is_not_compared() -> None:
    result = compare([WHOLE, WHOLE], resumed(*steps(*range(13, 21), change=lambda step: 1e-3 * (step == 14))))
    assert result.verdict is Judgement.EQUAL
    assert result.not_compared == ["loss at 14: 0.072429 instead of 0.071429, a mean over the restart"]
    # Nothing shows a difference near the end, or two, as such a mean.
    for wrong in ((19,), (14, 16)):
        found = resumed(*steps(*range(13, 21), change=lambda step, wrong=wrong: 1e-3 * (step in wrong)))  # type: ignore[misc]
        assert compare([WHOLE, WHOLE], found).verdict is Judgement.DIFFERENT


def test_each_restart_may_have_one_mean_of_its_own() -> None:
    def wrong(first: int, last: int, at: int) -> list[str]:
        return [START, *steps(*range(first, last), change=lambda step: 1e-3 * (step == at))]

    killed_twice = run(*steps(*range(1, 9)), *wrong(7, 14, 8), *wrong(13, 21, 14))
    assert compare([WHOLE, WHOLE], killed_twice).verdict is Judgement.EQUAL


@pytest.mark.parametrize("line", ["epoch {} loss {:.6f}", "loss {1:.6f}"])
def test_a_last_mean_over_the_restart_is_not_compared_if_the_weights_are_equal(line: str) -> None:
    whole, lines = run(*steps(*range(1, 21), every=line), w=[1.0, 2.0]), steps(*range(1, 18), every=line)
    rest = steps(18, 19, 20, every=line, change=lambda step: 1e-3 * (step == 19))
    result = compare([whole, whole], run(*lines, START, *rest, w=[1.0, 2.0]))
    assert (result.verdict, len(result.not_compared)) == (Judgement.EQUAL, 1)
    assert result.not_compared[0].endswith("a mean over the restart")
    assert compare([whole, whole], run(*lines, START, *rest, w=[1.0, 3.0])).verdict is Judgement.DIFFERENT
    assert compare([whole, whole], run(*lines, START, *rest)).verdict is Judgement.DIFFERENT
    saved = {name.replace("/model/", "/checkpoints/"): points for name, points in whole.items()}
    found = {
        name.replace("/model/", "/checkpoints/"): points
        for name, points in run(*lines, START, *rest, w=[1.0, 2.0]).items()
    }
    assert compare([saved, saved], found).verdict is Judgement.DIFFERENT


@pytest.mark.parametrize(
    ("losses", "verdict"),
    [
        ((0.5, 0.4, 0.3), Judgement.EQUAL),
        ((0.5, 0.4, 0.300001), Judgement.DIFFERENT),
        # One that stays the same says nothing, nor does what the first process measured.
        ((0.5, 0.3, 0.3), Judgement.DIFFERENT),
        ((0.5, 0.4), Judgement.DIFFERENT),
    ],
)
def test_a_last_mean_over_the_restart_is_not_compared_if_the_evaluation_after_it_is_equal(
    losses: tuple[float, ...], verdict: Judgement
) -> None:
    evaluations = [f"epoch {number} val_loss={loss:.6f}" for number, loss in enumerate(losses)]
    whole = run(*steps(1, 2, 3, every="epoch {} train_loss={:.6f}"), *evaluations[:2], "epoch 2 val_loss=0.300000")
    last = ["epoch 3 train_loss=0.25", *evaluations[2:]]
    found = run(*steps(1, 2, every="epoch {} train_loss={:.6f}"), *evaluations[:2], START, *last)
    assert compare([whole, whole], found).verdict is verdict


def test_an_evaluation_is_no_mean_over_the_restart() -> None:
    for at in (14, 20):
        lines = [
            steps(*range(1, 21), every="step {} val loss {:.6f}", change=each)
            for each in (lambda step: 0.0, lambda step, at=at: 1e-3 * (step == at))
        ]
        whole = run(*lines[0], w=[1.0, 2.0])
        found = run(*lines[0][:12], START, *lines[1][12:], w=[1.0, 2.0])
        assert compare([whole, whole], found).verdict is Judgement.DIFFERENT
    final = [run(f"final accuracy {each}", w=[1.0, 2.0]) for each in (0.5, 0.5, 0.6)]
    assert compare(final[:2], final[2]).verdict is Judgement.DIFFERENT


def test_the_mean_of_all_steps_that_a_restart_has_shortened_is_not_compared() -> None:
    runs = [run(*steps(*range(1, 21)), f"'train_loss': {each}, 'epoch': 3.0", w=[1.0, 2.0]) for each in (0.5, 0.5, 0.1)]
    result = compare(runs[:2], runs[2])
    assert (result.verdict, len(result.not_compared)) == (Judgement.EQUAL, 1)


def test_a_progress_bar_that_begins_anew_is_not_accused() -> None:
    def bar(first: int, last: int, total: int = 20) -> list[str]:
        bars = [
            f"{100 * at // total:3d}%|{'#' * (at * 9 // total)}| {at}/{total} [00:01<00:02, 8it/s" for at in range(21)
        ]
        return [f"{bars[at]}, loss={1 / (20 - total + at):.4f}]" for at in range(first, last + 1)]

    whole = run(*bar(1, 20))
    result = compare([whole, whole], run(*bar(1, 12), START, *bar(1, 10, total=10)))
    assert (result.verdict, result.num_compared) == (Judgement.EQUAL, 1)


def test_a_resumed_process_that_ends_at_once_is_different() -> None:
    line = "it {} objective {:.6f}"
    whole = run(*steps(*range(1, 21), every=line))
    found = run(*steps(*range(1, 13), every=line), START, "cannot load the checkpoint")
    assert compare([whole, whole], found).verdict is Judgement.DIFFERENT
    short = run("epoch 1 loss 3", "epoch 2 loss 2")
    assert compare([short, short], run("epoch 1 loss 3", START)).verdict is Judgement.CANNOT_BE_JUDGED


def test_one_number_without_a_step() -> None:
    def found(text: str) -> Observation:
        return run(*steps(*range(1, 21)), text)

    assert compare([found("PSNR 31.25")] * 2, found("PSNR 30.5")).verdict is Judgement.DIFFERENT
    result = compare([found("shards 3")] * 2, found("shards 4"))
    assert (result.verdict, result.not_compared) == (Judgement.EQUAL, ["shards: 4 instead of 3"])
    assert compare([found("interruptions: 0")] * 2, found("interruptions: 1")).not_compared == []


def test_a_rate_is_no_noise_of_the_training() -> None:
    runs = [run(*(f"{line} rate={each}" for line in steps(*range(1, 21)))) for each in (7.5, 7.75, 90.25)]
    result = compare(runs[:2], runs[2])
    assert (result.verdict, result.is_noisy) == (Judgement.EQUAL, False)


def test_a_model_that_no_reader_reads_is_not_equal() -> None:
    lines = steps(*range(1, 21))
    whole = run(*lines, model="sha256 a")
    result = compare([whole, whole], run(*lines, model="sha256 b"))
    assert (result.verdict, result.not_compared) == (Judgement.CANNOT_BE_JUDGED, [UNREAD_MODEL])
    # Bytes that differ in undisturbed runs, too, such as a time, say nothing.
    result = compare([whole, run(*lines, model="sha256 c")], run(*lines, model="sha256 b"))
    assert (result.verdict, result.not_compared) == (Judgement.EQUAL, [UNREAD_MODEL])


def test_whole_numbers_that_differ_between_undisturbed_runs_are_not_compared() -> None:
    runs = [run(q=[1, 2, each], w=[1.0, 2.0 + each / 100]) for each in (1, 2, 3)]
    result = compare(runs[:2], runs[2])
    assert (result.verdict, len(result.not_compared)) == (Judgement.WITHIN_NOISE, 1)
    assert result.not_compared == ["output/model/w.npz q: [1 2 3] instead of [1 2 1]"]


def test_a_column_of_the_clock_is_not_accused() -> None:
    runs = [run(history=[[1, 0.5, at], [2, 0.25, at + 1]], w=[1.0, 2.0]) for at in (100.0, 103.0, 900.0)]
    result = compare(runs[:2], runs[2])
    assert (result.verdict, len(result.not_compared)) == (Judgement.EQUAL, 1)


def test_a_history_since_the_restart_is_not_accused() -> None:
    whole = run(history=[3.0, 2.0, 1.0], w=[1.0, 2.0])
    result = compare([whole, whole], run(history=[2.0, 1.0], w=[1.0, 2.0]))
    assert result.verdict is Judgement.EQUAL
    assert result.not_compared == ["output/model/w.npz history: [2 1] instead of [3 2 1]"]
    assert compare([whole, whole], run(history=[3.0, 2.0], w=[1.0, 2.0])).verdict is Judgement.DIFFERENT


def test_a_slash_in_a_line_does_not_make_it_a_file() -> None:
    lines = [f"epoch 1/4 step {step} loss={1 / step} rows={step} {step + 1} {step + 2}" for step in range(1, 9)]
    whole = run(*lines)
    # The last list is shorter, as that of a replica of more.
    assert compare([whole, whole], run(*lines[:7], lines[7][:-3])).verdict is Judgement.EQUAL
    result = compare([whole, whole], run(*(line.replace("loss=", "loss=9") for line in lines)))
    assert str(result.differences[0]) == "loss at 1/1: 91 instead of 1"


def test_a_line_that_a_kill_has_cut_is_compared_with_nothing() -> None:
    lines = steps(*range(1, 21), every="loss={1:.6f} at step {0}")
    # Half of step 12 looks like another loss of step 1.
    cut = f"{lines[11][:-1]}{START}"
    whole = run(*lines)
    assert compare([whole, whole], run(*lines[:11], cut, *lines[11:])).verdict is Judgement.EQUAL


def test_rounding_is_noise() -> None:
    result = compare([run(w=[1.0, 2.0])] * 2, run(w=[1.0, 2.0 + 1e-9]))
    assert result.verdict is Judgement.WITHIN_NOISE
    assert compare([run(rows=[1, 2])] * 2, run(rows=[1, 3])).verdict is Judgement.DIFFERENT
    assert compare([run(w=[np.nan])] * 2, run(w=[np.nan])).verdict is Judgement.EQUAL
    assert compare([run(w=[1.0])] * 2, run(w=[np.nan])).verdict is Judgement.DIFFERENT


def test_a_value_that_became_a_text_is_different() -> None:
    # As JSON's null is read.
    assert compare([run(loss=0.5)] * 2, run(loss="None")).verdict is Judgement.DIFFERENT
    assert compare([run(loss="None")] * 2, run(loss=0.5)).verdict is Judgement.DIFFERENT


def test_a_missing_model_is_different() -> None:
    assert compare([run(w=[1.0])] * 2, run()).verdict is Judgement.DIFFERENT


def test_steps_and_examples_are_counted() -> None:
    lines = [f"step {step} loss={1 / step:.5f} examples {step} {step + 100}" for step in range(1, 21)]
    whole = run(*lines)
    found = run(*lines[:15], START, *lines[10:])
    result = compare([whole, whole], found)
    assert (result.steps_lost, result.steps_missing) == (5, 0)
    assert (result.examples_repeated, result.examples_never_seen) == (0, 0)
    other = run(*lines[:15], START, *[line.replace("examples 1", "examples 2") for line in lines[10:]])
    result = compare([whole, whole], other)
    assert result.examples_never_seen
    assert result.examples_repeated
    left_out = compare([whole, whole], run(*lines[:10], START, *lines[16:]))
    assert left_out.steps_missing == 6


def test_only_the_primary_replica_has_to_reach_the_end() -> None:
    worker = {name.replace("replica", "workerpool1-0"): points for name, points in WHOLE.items()}
    stopped = {name: points[:9] for name, points in worker.items()}
    assert compare([worker, worker], stopped).verdict is Judgement.EQUAL


def test_events_have_as_many_steps_as_time_allows() -> None:
    def events(*ranges: tuple[int, int]) -> Observation:
        name = "workerpool0-0|event steps|loss"
        return {name: [Point(name=name, key=each, value=np.array(1.0 / each[1])) for each in ranges]}

    whole = events((1, 10), (11, 20), (21, 30))
    assert compare([whole], events((1, 10), (11, 15), (16, 25), (26, 30))).verdict is Judgement.EQUAL
    assert compare([whole], events((1, 15), (16, 30))).verdict is Judgement.CANNOT_BE_JUDGED


def test_values_without_a_counter_are_counted_from_the_end_after_a_restart() -> None:
    lines = [f"loss={1 / step:.5f}" for step in range(1, 21)]
    whole = run(*lines)
    assert compare([whole, whole], run(*lines[:15], START, *lines[10:])).verdict is Judgement.EQUAL
    wrong = compare([whole, whole], run(*lines[:15], START, *lines[:10]))
    assert wrong.verdict is Judgement.DIFFERENT
    (curve,) = wrong.curves
    assert [*curve.expected] == [(at,) for at in range(20)]
