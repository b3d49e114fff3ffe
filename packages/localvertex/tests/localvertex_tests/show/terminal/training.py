"""The program of a training job: it prints what TensorFlow prints, writes an event log, and waits to be released."""

import json
import os
import pathlib
import sys
import time

NOISE = """\
WARNING: All log messages before absl::InitializeLog() is called are written to STDERR
I0000 00:00:1795315715.065645   17468 port.cc:153] oneDNN custom operations are on. You may see slightly different
2026-11-22 03:00:00.123456: E external/local_xla/xla/stream_executor/cuda/cuda_fft.cc:467] Unable to register cuFFT
"""

released = pathlib.Path(sys.argv[1])
folder = pathlib.Path(os.environ["AIP_CHECKPOINT_DIR"]) / "events"
folder.mkdir(parents=True)
print(NOISE, end="", file=sys.stderr, flush=True)
while not (released / "start").exists():
    time.sleep(0.02)
name = "workerpool0-0"
for step in range(1, 4):
    event = {"event": "steps", "time": 1000.0 + 100 * step, "first_step": step, "last_step": step, "num_steps": 9}
    event |= {"loss": 0.5 / step, "accuracy": 0.25 * step, "images_per_second": 4321.0, "seconds": 1.0}
    with (folder / f"{name}.jsonl").open("a") as file:
        file.write(json.dumps(event) + "\n")
while not (released / "end").exists():
    time.sleep(0.02)
