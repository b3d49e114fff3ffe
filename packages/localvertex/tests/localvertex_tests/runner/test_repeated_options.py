"""The options of an earlier run, given to a process that resumes it: nothing that adds rights is taken over."""

from pathlib import Path
from typing import Any

import pytest

from localvertex._base.userinput.errors import UserError
from localvertex.containers.options import ContainerOptions
from localvertex.jobs.faults import faults
from localvertex.runner.options import Options
from localvertex.runner.repeated_options import merge_options, words


def test_options_without_further_rights_are_those_of_the_run(tmp_path: Path) -> None:
    given = Options(
        use_cache=False,
        fail_fast=True,
        max_parallel=17,
        max_backoff_seconds=0.5,
        grace_seconds=3.0,
        gcs_root=tmp_path,
    )
    options, missing = merge_options(Options(), words(given))
    assert missing == []
    assert words(options) == words(given)


@pytest.mark.parametrize(
    "given",
    [
        {"with_credentials": True},
        {"containers": ContainerOptions(allow_host_commands=True)},
        {"containers": ContainerOptions(allow_network=True)},
        {"command_prefixes": {"python:3.11": ("sh", "-c", "a b")}},
    ],
)
def test_further_rights_are_named_unless_the_process_has_them(given: dict[str, Any]) -> None:
    options, missing = merge_options(Options(), words(Options(**given)))
    assert missing == words(Options(**given)) != []
    assert words(options) == []
    assert merge_options(Options(**given), words(Options(**given))) == (Options(**given), [])


def test_faults_do_not_happen_again() -> None:
    options = Options(faults=(faults.parse("SIGKILL workerpool0-0 at step 3"),))
    assert merge_options(options, [])[0].faults == ()


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("--max-parallel=0", UserError),
        ("--max-parallel=x", ValueError),
        ("--grace=nan", UserError),
        ("--grace", ValueError),
    ],
)
def test_a_damaged_word_is_not_taken_over(word: str, error: type[Exception]) -> None:
    with pytest.raises(error):
        merge_options(Options(), [word])
    assert merge_options(Options(), ["--unknown=1", "rm"])[1] == ["--unknown=1", "rm"]
