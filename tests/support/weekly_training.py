"""Training code whose test set changes each week; it also predicts with the champion's model.

Usage: `weekly_training.py WEEK ERRORS`: the share of the training examples with a wrong label.
"""

import json
import os
import pathlib
import sys

import numpy as np

checkpoints, model = (pathlib.Path(os.environ[name]) for name in ("AIP_CHECKPOINT_DIR", "AIP_MODEL_DIR"))
for folder in (checkpoints, model):
    folder.mkdir(parents=True, exist_ok=True)
week, errors = int(sys.argv[1]), float(sys.argv[2])
random = np.random.default_rng(week)
x = random.normal(size=(500, 2))
labels = (x @ [2.0, -1.0] > 0).astype(int)
targets = np.where(random.random(300) < errors, x[:300, 1] > 0, labels[:300])
weights = np.linalg.lstsq(x[:300], 2.0 * targets - 1)[0]


def lines(of: np.ndarray) -> list[dict[str, object]]:
    answers = (x[300:] @ of > 0).astype(int)
    return [
        {"id": f"{week}-{number}", "label": int(label), "prediction": int(answer)}
        for number, (label, answer) in enumerate(zip(labels[300:], answers, strict=True))
    ]


def write(name: str, content: list[dict[str, object]]) -> None:
    (checkpoints / name).write_text("".join(json.dumps(line) + "\n" for line in content))


(model / "weights.json").write_text(json.dumps(weights.tolist()))
own = lines(weights)
write("predictions.jsonl", own)
if champion := os.environ.get("CHAMPION_MODEL"):
    known = pathlib.Path(os.environ["CHAMPION_TEST_IDS"]).read_text().splitlines()
    assert not {json.loads(line)["id"] for line in known} & {line["id"] for line in own}
    write(
        "predictions_of_champion.jsonl", lines(np.array(json.loads(pathlib.Path(champion, "weights.json").read_text())))
    )
accuracy = float(np.mean([line["label"] == line["prediction"] for line in own]))
(checkpoints / "result.json").write_text(json.dumps({"metrics": {"accuracy": accuracy}}))
