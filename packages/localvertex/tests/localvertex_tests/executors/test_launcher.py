"""The arguments of Google's launchers: names are read as the launchers' own parser reads them."""

import argparse

import pytest

from localvertex.executors.launcher import launcher_options

NAMES = ("type", "project", "location", "payload", "gcp_resources", "executor_input", "parent_model_name")


@pytest.mark.parametrize(
    "words",
    [
        ["--gcp_resource", "/tmp/x", "--payload", "{}"],
        ["--gcp", "/tmp/x", "--pay", "{}", "--proj", "p", "--loc", "l"],
        ["--gcp_resources=/tmp/x", "--payload={}"],
        ["--gcp_resource=/tmp/a=b", "--payl={}", "--type", "CustomJob"],
    ],
)
def test_abbreviations_and_equal_signs_are_read_as_by_argparse(words: list[str]) -> None:
    parser = argparse.ArgumentParser()
    for name in NAMES:
        parser.add_argument(f"--{name}")
    expected = {name: value for name, value in vars(parser.parse_args(words)).items() if value is not None}
    assert launcher_options(words) == expected


@pytest.mark.parametrize("words", [["--payload"], ["--p", "x"], ["--", "x"], ["payload", "x"]])
def test_what_names_no_option_is_none(words: list[str]) -> None:
    assert not launcher_options(words).keys() & set(NAMES)
