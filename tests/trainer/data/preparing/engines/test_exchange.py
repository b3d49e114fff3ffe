"""Work items in a folder: whatever a worker does twice, or with others at the same time, has one result."""

import threading
from pathlib import Path

import pytest

from localvertex._base.userinput.errors import UserError
from tests.support import work_items
from trainer.command_line import TrainingError
from trainer.data.preparing import versions
from trainer.data.preparing.engines import exchange
from trainer.data.preparing.engines.beam import Beam

FAILS = work_items.fail.__code__.co_firstlineno + 1


def work_on_all(folder: str) -> None:
    for name in exchange.missing_results(folder):
        exchange.work(folder, name)


def test_results_have_the_order_of_the_items(tmp_path: Path) -> None:
    numbers = range(30)
    beam = Beam(str(tmp_path), work_on_all)
    assert list(beam.map(work_items.square, numbers)) == [number * number for number in numbers]
    beam.close()
    assert list(tmp_path.rglob("*.*")) == []


def test_no_items_start_no_worker(tmp_path: Path) -> None:
    def run(folder: str) -> None:
        pytest.fail(f"workers were started for {folder}")

    assert list(Beam(str(tmp_path), run).map(work_items.square, [])) == []


def test_a_bundle_that_runs_in_several_workers_changes_nothing(tmp_path: Path) -> None:
    folder = str(tmp_path)
    assert exchange.put(folder, work_items.square, range(10)) == 10
    names = exchange.missing_results(folder)
    started = threading.Barrier(4)

    def work() -> None:
        started.wait()
        for name in names:
            exchange.work(folder, name)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert exchange.missing_results(folder) == []
    assert list(exchange.results(folder)) == [number * number for number in range(10)]
    assert len(list(tmp_path.iterdir())) == 20


@pytest.mark.parametrize(
    ("function", "kind", "line"),
    [
        (work_items.refuse, UserError, "number 0 cannot be used; give another one"),
        (work_items.forbid, PermissionError, "[Errno 13] Permission denied: 'gs://bucket/0'"),
        (
            work_items.fail,
            TrainingError,
            f"a worker failed: IndexError: list index out of range (work_items.py, line {FAILS})",
        ),
    ],
)
def test_the_error_of_a_worker_is_the_one_of_this_machine(
    tmp_path: Path, function: object, kind: type[Exception], line: str
) -> None:
    folder = str(tmp_path)
    exchange.put(folder, function, [0, 1])  # type: ignore[arg-type]
    with pytest.raises(Exception, match=r"."):
        work_on_all(folder)
    with pytest.raises(kind) as caught:
        exchange.raise_error(folder)
    assert str(caught.value) == line
    assert exchange.missing_results(folder) == ["000000", "000001"]


def test_workers_of_another_version_are_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = str(tmp_path)
    exchange.put(folder, work_items.square, [3])
    with monkeypatch.context() as worker:
        worker.setattr(versions, "own", lambda: "another")
        with pytest.raises(UserError, match="another version"):
            work_on_all(folder)
    with pytest.raises(UserError) as caught:
        exchange.raise_error(folder)
    expected = f"the workers' image has another version of the trainer (another) than this step ({versions.own()});"
    assert str(caught.value).startswith(expected)
    assert "\n" not in str(caught.value)
    # The image was replaced: nothing of the failure remains.
    work_on_all(folder)
    assert list(exchange.results(folder)) == [9]


def test_an_error_before_the_result_is_forgotten(tmp_path: Path) -> None:
    folder = str(tmp_path)
    exchange.put(folder, work_items.square, [3])
    (tmp_path / "000000.error").write_bytes(b"not read")
    exchange.work(folder, "000000")
    exchange.raise_error(folder)
    assert list(exchange.results(folder)) == [9]
