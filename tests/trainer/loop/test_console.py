"""What a user sees of a run: plain lines."""

import pytest

from trainer.loop import console

STEPS = {
    "first_step": 1,
    "last_step": 8,
    "num_steps": 80,
    "loss": 0.5,
    "accuracy": 0.75,
    "seconds": 2.0,
    "images_per_second": 1234.5,
    "learning_rate": 0.001,
    "epoch": 0.4,
}


def test_plain_lines_are_limited_for_steps_but_not_for_validations(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    log_event = console.PlainLines(clock=lambda: now[0])
    for second in range(25):
        now[0] = float(second)
        log_event("steps", **STEPS)
    log_event("evaluate", epoch=1.0, loss=0.5, accuracy=0.75, is_best=True)
    lines = capsys.readouterr().out.splitlines()
    assert lines == ["step 8/80  loss 0.5000  accuracy 0.7500  1,234 img/s"] * 3 + [
        "epoch 1  validation loss 0.5000  accuracy 0.7500  best so far"
    ]


def test_the_start_and_a_restore_are_described(capsys: pytest.CaptureFixture[str]) -> None:
    log_event = console.PlainLines()
    log_event("start", model="convnet", num_steps=80, steps_per_epoch=20, run_id="abc")
    log_event("restore", step=5, seconds=0.25)
    log_event("exit", code=0)
    shown = capsys.readouterr().out
    assert "training convnet for 80 steps (20 per epoch), run abc" in shown
    assert "resuming at step 5 (restored in 0.2 s)" in shown
