"""Which steps are profiled, and how calls are cut for them."""

from pathlib import Path
from typing import Any

import pytest

from localvertex_base.userinput.errors import UserError
from trainer.loop.board.profile import Profiler, ProfileSteps, parse


def test_steps_are_read_from_a_range_and_none_from_an_empty_text() -> None:
    assert parse("100-109") == ProfileSteps(first=100, last=109)
    assert parse("2-101") == ProfileSteps(first=2, last=101)
    assert parse("") == ProfileSteps(first=0, last=0)


@pytest.mark.parametrize("text", ["100", "100:109", "10-9", "1-10", "0-5", "-5--1", "2-102", "a-b", " 2-3", "2-3\n"])
def test_another_range_is_refused_with_an_example(text: str) -> None:
    with pytest.raises(UserError, match="expected"):
        parse(text)


def test_no_call_crosses_a_boundary_of_the_profile() -> None:
    steps, step, ends = parse("8-12"), 0, []
    while step < 30:
        step += steps.next_boundary(step, 10)
        ends.append(step)
    assert ends == [7, 12, 22, 32]


def test_calls_are_not_cut_without_a_profile() -> None:
    assert [parse("").next_boundary(step, 10) for step in range(30)] == [10] * 30


@pytest.mark.parametrize(
    ("first_call", "ends", "said"), [(0, 42, True), (25, 42, True), (110, 120, False), (0, 0, False)]
)
def test_a_profile_that_an_early_end_cuts_off_is_named(first_call: int, ends: int, said: bool, tmp_path: Path) -> None:
    notices: list[str] = []

    def log_event(event: str, **fields: Any) -> None:
        notices.append(f"{event}: {fields['message']}")

    profiler = Profiler(parse("100-109"), str(tmp_path), log_event=log_event)
    step = first_call
    while step < ends:
        num_steps = profiler.begin(step, min(10, ends - step))
        step += num_steps
        profiler.end(step)
    profiler.close()
    assert notices == ["notice: steps 100 to 109 are not profiled (training ended at step 42)"] * said
