"""Paths that can be used pass; tests/test_hostile_values.py has those that cannot."""

import pytest

from localvertex._base.userinput import paths
from localvertex._base.userinput.errors import UserError


@pytest.mark.parametrize(
    "path",
    ["x", ".", "/", "a b", "ü/ä", "a:b", "C:/data", "-0", "x" * 255, "gs://bucket", "gs://my-bucket/a b/c", "~/x"],
)
def test_a_path_that_can_be_used_is_returned_unchanged(path: str) -> None:
    assert paths.check("--x", path) == path


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("gs:/x", "--x='gs:/x' names no bucket; expected gs://BUCKET/FOLDER"),
        ("s3://b/x", "--x='s3://b/x' is not supported (s3:); expected a local path or gs://BUCKET/FOLDER"),
        ("", "--x is empty; expected a local path or gs://BUCKET/FOLDER"),
    ],
)
def test_the_message_names_the_flag_and_what_is_expected(path: str, message: str) -> None:
    with pytest.raises(UserError) as caught:
        paths.check("--x", path)
    assert str(caught.value) == message


def test_a_long_path_is_shown_in_part() -> None:
    with pytest.raises(UserError, match=r"^--x='x{90,}\.\.\. \(5000 characters\) is too long; .*, found 5,000$"):
        paths.check("--x", "x" * 5000)
