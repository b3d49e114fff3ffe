"""What a training starts from: it is recorded in its result, and is not looked for elsewhere."""

from pathlib import Path

import pytest

from localvertex._base.userinput.errors import UserError
from trainer.checkpoints import starting_weights


@pytest.mark.parametrize(("noted", "is_own"), [("sha256:1", True), ("sha256:2", False), (None, False)])
def test_a_result_has_only_the_start_of_its_own_run(tmp_path: Path, noted: str | None, is_own: bool) -> None:
    if noted:
        starting_weights.note_start(str(tmp_path), weights=noted, folder="copy", taken="all")
    expected = {"weights": "sha256:1", "folder": "copy", "taken": "all"} if is_own else None
    assert starting_weights.start_of(str(tmp_path), {"weights": "sha256:1"}) == expected


def test_weights_without_a_folder_are_not_looked_for_in_the_root_folder() -> None:
    with pytest.raises(UserError, match=r"--starting-weights is missing; give the folder with the weights sha256:123"):
        starting_weights.read("", "sha256:123")
