"""Training code that knows nothing of this project: a line in NumPy, and what the pipeline asks for beside its model.

Usage: `any_training.py RATE [fails | half]`: half learns from one of two numbers.
"""

import json
import os
import pathlib
import sys

import numpy as np

checkpoints, model = (pathlib.Path(os.environ[name]) for name in ("AIP_CHECKPOINT_DIR", "AIP_MODEL_DIR"))
for folder in (checkpoints, model):
    folder.mkdir(parents=True, exist_ok=True)
with (checkpoints / "starts").open("a") as starts:
    starts.write("started\n")

random = np.random.default_rng(0)
x = random.normal(size=(500, 2))
labels = (x @ [2.0, -1.0] > 0).astype(int)
if "half" in sys.argv:
    x[:300, 1] = 0
weights = np.zeros(2)
for _ in range(20):
    weights += float(sys.argv[1]) * x[:300].T @ (labels[:300] - 1 / (1 + np.exp(-x[:300] @ weights))) / 300

(model / "weights.json").write_text(json.dumps(weights.tolist()))
answers = (x[300:] @ weights > 0).astype(int)
lines = [
    {"id": number, "label": int(label), "prediction": int(answer), "instance": row.tolist()}
    for number, (label, answer, row) in enumerate(zip(labels[300:], answers, x[300:], strict=True))
]
(checkpoints / "predictions.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
metrics = {"accuracy": float((answers == labels[300:]).mean())}
(checkpoints / "result.json").write_text(json.dumps({"metrics": metrics}))
if "fails" in sys.argv:
    raise SystemExit(3)
