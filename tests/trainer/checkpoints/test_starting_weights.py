"""What a training starts from: it is recorded in its result, and is not looked for elsewhere."""

from pathlib import Path

import numpy as np
import pytest

from exact_resume.checkpoints import outcome, result_file
from exact_resume.checkpoints.checkpoints import Best
from localvertex_base.userinput.errors import UserError
from trainer.checkpoints import starting_weights


@pytest.mark.parametrize(("noted", "is_own"), [("sha256:1", True), ("sha256:2", False), (None, False)])
def test_a_result_has_only_the_start_of_its_own_run(tmp_path: Path, noted: str | None, is_own: bool) -> None:
    if noted:
        starting_weights.note_start(str(tmp_path), weights=noted, folder="copy", taken="all")
    run_identity = {"weights": "sha256:1"}
    outcome.write_result(
        str(tmp_path),
        run_id="abc",
        run_identity=run_identity,
        global_batch_size=1,
        metric="accuracy",
        final_step=1,
        num_planned_steps=1,
        stop_reason="all planned steps are done",
        best=Best(step=1, accuracy=0.5, loss=1.0),
        weights_sha256="0",
        batch_digests=np.zeros(0, np.uint64),
        num_devices=1,
        started_from=starting_weights.start_of(str(tmp_path), run_identity),
    )
    result = result_file.read_result(str(tmp_path))
    assert result
    expected = {"weights": "sha256:1", "folder": "copy", "taken": "all"} if is_own else None
    assert result["started_from"] == expected


def test_weights_without_a_folder_are_not_looked_for_in_the_root_folder() -> None:
    with pytest.raises(UserError, match=r"--starting-weights is missing; give the folder with the weights sha256:123"):
        starting_weights.read("", "sha256:123")
