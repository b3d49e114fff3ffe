"""Programs that would save another object than they train, or a stream that is ahead of its step: never silently."""

import contextlib
import functools
import itertools
import types
import weakref
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import exact_resume
from exact_resume.checkpoints import checkpoints
from exact_resume.events import log as event_log

Step = Callable[[int], object]
Program = tuple[dict[str, Any], Step]


def train(folder: Path, program: Callable[[], Program]) -> list[str]:
    """Run six steps of a program, with a save after every two; return the notices."""
    state, step = program()
    with exact_resume.run(folder, steps=6, state=state, save_every_steps=2) as run:
        # As if it had been written into the call.
        del state
        for number in run:
            step(number)
    return notices(folder)


def notices(folder: Path) -> list[str]:
    return [event["message"] for event in event_log.read(str(folder)) if event["event"] == "notice"]


def weights() -> Program:
    w = np.zeros(3)

    def step(number: int) -> None:
        nonlocal w
        w = w - 0.1

    return {"w": w}, step


def views() -> Program:
    w, scale = np.arange(6.0).reshape(2, 3), np.array(1.0)

    def step(number: int) -> None:
        nonlocal w, scale
        w, scale = w - 0.1, scale * 0.9

    return {"w": w, "scale": scale}, step


def dict_of_parameters() -> Program:
    params = {"w": np.zeros(3), "b": np.zeros(1), "rate": 0.1}

    def step(number: int) -> None:
        nonlocal params
        params = {name: value - 0.1 for name, value in params.items()}

    return {"params": params}, step


def list_of_layers() -> Program:
    layers: Any = [(np.zeros(3), np.zeros(1)), (np.zeros(1), np.zeros(1))]

    def step(number: int) -> None:
        nonlocal layers
        layers = [(w - 0.1, b - 0.1) for w, b in layers]

    return {"layers": layers}, step


def entries() -> Program:
    w, b = np.zeros(3), np.zeros(1)

    def step(number: int) -> None:
        nonlocal w, b
        w, b = w - 0.1, b - 0.1

    return {"both": [w, {"b": b}]}, step


def entry_of_the_given_dict() -> Program:
    given = {"w": np.zeros(3)}

    def step(number: int) -> None:
        given["w"] = given["w"] - 0.1

    return given, step


def arrays_of_jax() -> Program:
    jax = pytest.importorskip("jax")
    params = {"w": jax.numpy.zeros(3), "key": jax.random.key(0)}

    def step(number: int) -> None:
        nonlocal params
        params = {"w": params["w"] - 0.1, "key": jax.random.split(params["key"])[0]}

    return {"params": params}, step


@pytest.mark.parametrize(
    ("program", "mends"),
    [
        (weights, ["w[...] = ..."]),
        (views, ["w[...] = ...", "scale[...] = ..."]),
        (dict_of_parameters, ["params.update(...)"]),
        (list_of_layers, ["layers[:] = ..."]),
        (entries, ["both.0[...] = ...", "both.1.b[...] = ..."]),
        (entry_of_the_given_dict, ["w[...] = ..."]),
        (arrays_of_jax, ["params.update(...)"]),
    ],
)
def test_a_program_that_rebinds_all_of_its_state_ends_before_its_first_save(
    tmp_path: Path, program: Callable[[], Program], mends: list[str]
) -> None:
    with pytest.raises(SystemExit) as raised:
        train(tmp_path / "run", program)
    assert raised.value.code == 2
    assert checkpoints.steps(str(tmp_path / "run")) == []
    *found, last = notices(tmp_path / "run")
    assert [each.rpartition("in place: ")[2] for each in found] == mends
    assert last.startswith("error: ")
    assert [event["code"] for event in event_log.read(str(tmp_path / "run")) if event["event"] == "exit"] == [2]


def test_a_member_that_is_rebound_is_reported_once(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    def momentum() -> Program:
        w, m = np.zeros(3), np.zeros(3)

        def step(number: int) -> None:
            nonlocal w, m
            m = 0.9 * m + 1
            w -= 0.1 * m

        return {"w": w, "m": m}, step

    (line,) = train(tmp_path / "run", momentum)
    assert line.startswith("state 'm' is unchanged")
    assert line in capfd.readouterr().err


HOLDERS: dict[str, Callable[[Any], Any]] = {
    "container": lambda w: {"here": (w,)},
    "closure": lambda w: lambda: w,
    "object": lambda w: types.SimpleNamespace(w=w),
    "C extension": lambda w: functools.partial(np.sum, w),
    "C iterator": itertools.repeat,
    "buffer": memoryview,
    "view": lambda w: w[1:],
    "view of a view": lambda w: w.reshape(3, 1)[1:].T,
    "generator": lambda w: (each for each in w),
}


@pytest.mark.parametrize("is_let_go", [False, True])
@pytest.mark.parametrize("holder", HOLDERS)
def test_an_unchanged_member_is_reported_only_if_nothing_refers_to_it_any_more(
    tmp_path: Path, holder: str, is_let_go: bool
) -> None:
    """As a frozen backbone, the best weights, or weights whose learning rate is 0."""

    def program() -> Program:
        trained, frozen = np.zeros(3), np.arange(3.0)
        kept = [HOLDERS[holder](frozen)]

        def step(number: int) -> None:
            nonlocal trained
            trained += 1
            if is_let_go and number == 3:
                kept.clear()

        return {"trained": trained, "frozen": frozen}, step

    assert len(train(tmp_path / "run", program)) == is_let_go


def rarely() -> Program:
    w, total, best = np.zeros(3), np.zeros(3), {"weights": np.zeros(3), "loss": np.float64(9)}

    def step(number: int) -> None:
        # Gradients are accumulated, with a warm-up of three steps.
        total[...] += 1
        if number == 4:
            w[...] -= 0.1 * total
            total[...] = 0
        if number == 5:
            best["weights"], best["loss"] = w.copy(), np.float64(1)

    return {"w": w, "total": total, "best": best}, step


def never() -> Program:
    w, both = np.zeros(3), np.zeros(6)

    def step(number: int) -> None:
        w[...] -= 0.0 * both.sum()

    # The program has no name for the copy nor for the halves.
    return {"w": w, "start": w.copy(), "halves": [both[:3], both[3:]], "config": {"rate": 0.0, "tags": ["a"]}}, step


def tied() -> Program:
    w = np.zeros(3)
    layers = {"encoder": w, "decoder": w}
    return {"w": w, "layers": layers}, lambda number: layers


def given_dict_is_kept() -> Program:
    given = {"w": np.zeros(3), "b": np.zeros(1)}
    return given, lambda number: given


def only_a_weak_reference() -> Program:
    w = np.zeros(3)
    kept, weak = [w], weakref.ref(w)
    return {"w": w}, lambda number: kept.clear() or weak()


def trained_and_let_go() -> Program:
    w, head = np.zeros(3), [np.zeros(3)]

    def step(number: int) -> None:
        w[...] += 1
        if number < 3:
            head[0] += 1
        elif number == 3:
            head.clear()

    return {"w": w, "head": head[0]}, step


@pytest.mark.parametrize(
    "program", [rarely, never, tied, given_dict_is_kept, only_a_weak_reference, trained_and_let_go]
)
def test_what_the_program_can_still_change_or_has_changed_is_not_reported(
    tmp_path: Path, program: Callable[[], Program]
) -> None:
    assert train(tmp_path / "run", program) == []


def test_memory_that_an_array_does_not_own_is_not_reported(tmp_path: Path) -> None:
    def program() -> Program:
        w, frozen = np.zeros(3), np.memmap(tmp_path / "frozen", np.float64, "w+", shape=(3,))
        kept = [frozen]

        def step(number: int) -> None:
            w[...] += 1
            kept.clear()

        return {"w": w, "frozen": frozen}, step

    assert train(tmp_path / "run", program) == []


def test_a_resumed_run_is_watched_too(tmp_path: Path) -> None:
    def program() -> Program:
        w, m = np.zeros(3), np.zeros(3)

        def step(number: int) -> None:
            nonlocal m
            m = m + 1
            w[...] += m
            if number == 3 and not (tmp_path / "failed").exists():
                (tmp_path / "failed").touch()
                raise ZeroDivisionError

        return {"w": w, "m": m}, step

    with pytest.raises(ZeroDivisionError):
        train(tmp_path / "run", program)
    assert len(train(tmp_path / "run", program)) == 2


def pairs(stream: Any, run: Any) -> Iterator[tuple[Any, int]]:
    for item in stream:
        yield item, next(run)


@pytest.mark.parametrize(
    "joined",
    [
        lambda stream, run: zip(stream, run, strict=False),
        lambda stream, run: zip(enumerate(stream), run, strict=False),
        lambda stream, run: zip(map(float, stream), run, strict=False),
        lambda stream, run: enumerate(zip(itertools.islice(stream, 3), run, strict=False)),
        pairs,
    ],
    ids=["zip", "enumerate", "map", "islice", "generator"],
)
def test_an_item_that_is_taken_before_its_step_is_refused(tmp_path: Path, joined: Any) -> None:
    total, stream = np.zeros(1), exact_resume.Stream(range(100))

    def program() -> None:
        nonlocal total
        with exact_resume.run(tmp_path / "run", steps=6, state={"total": total, "stream": stream}) as run:
            for _ in joined(stream, run):
                total += 1

    with pytest.raises(SystemExit) as raised:
        program()
    assert (raised.value.code, total[0]) == (2, 0)
    (line,) = notices(tmp_path / "run")
    assert "`for step, item in zip(run, stream)`" in line


class Loader:
    """As a DataLoader of PyTorch, whose iterator has a length that does not change."""

    def __init__(self, batches: Any) -> None:
        self.batches, self.taken = batches, iter(batches)

    def __iter__(self) -> "Loader":
        return self

    def __next__(self) -> Any:
        return next(self.taken)

    def __len__(self) -> int:
        return len(self.batches)


SAMPLER = exact_resume.Sampler(num_examples=10, global_batch_size=2)


@pytest.mark.parametrize(
    ("items", "code"),
    [
        (lambda run: range(6), 2),
        (lambda run: [1, 2, 3], 2),
        (lambda run: Loader([1] * 6), 2),
        (lambda run: Loader(SAMPLER.batches(start=0, stop=6, worker=run)), 2),
        (lambda run: SAMPLER.batches(start=0, stop=6, worker=run), 2),
        (lambda run: range(7), None),
        (lambda run: Loader([1] * 7), None),
        (lambda run: itertools.count(), None),
        (lambda run: itertools.repeat(1), None),
        (lambda run: (each for each in range(7)), None),
    ],
)
def test_finite_items_before_the_run_in_zip_are_refused_at_the_first_step(
    tmp_path: Path, items: Any, code: int | None
) -> None:
    total, left = np.zeros(1), None
    try:
        with exact_resume.run(tmp_path / "run", steps=6, state={"total": total}) as run:
            for _ in enumerate(zip(items(run), run, strict=False)):
                total += 1
    except SystemExit as error:
        left = error.code
    assert (left, total[0]) == (code, 0 if code else 6)


def test_items_after_the_run_in_zip_may_be_finite(tmp_path: Path) -> None:
    total = np.zeros(1)
    with exact_resume.run(tmp_path / "run", steps=6, state={"total": total}) as run:
        for (_, item), other in zip(zip(run, range(6), strict=False), range(6), strict=False):
            total += item == other
    assert total[0] == 6


def test_items_that_are_taken_in_their_steps_are_the_same_after_an_error(tmp_path: Path) -> None:
    for failing in (3, None):
        taken, stream = [], exact_resume.Stream(range(100))
        # Some programs look at the first item to build their model.
        assert next(stream) == 0
        with (
            pytest.raises(ZeroDivisionError) if failing else contextlib.nullcontext(),
            exact_resume.run(tmp_path / "run", steps=6, state={"stream": stream}, save_every_steps=1) as run,
        ):
            for step, item in zip(run, stream, strict=False):
                taken.append((step, item))
                assert step != failing or 1 / 0
    assert taken == [(step, step + 1) for step in range(3, 6)]
    assert notices(tmp_path / "run") == []
