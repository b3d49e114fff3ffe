"""scikit-learn's `partial_fit` on a table: python sklearn_table.py FOLDER, killed and run again at any moment.

Begin with `python -m exact_resume rehearse -- python sklearn_table.py FOLDER`.
"""

import hashlib
import os
import sys
from typing import Any

import numpy as np
from sklearn.datasets import load_breast_cancer
from sklearn.linear_model import SGDClassifier

import exact_resume

ATTRIBUTES = ("coef_", "intercept_", "t_")
"""What `partial_fit` changes; the number of updates decides the learning rate."""
table = load_breast_cancer()
x, y = (table.data - table.data.mean(axis=0)) / table.data.std(axis=0), table.target
model = SGDClassifier(loss="log_loss", learning_rate="invscaling", eta0=0.1, random_state=0)
# Makes the arrays.
model.partial_fit(x[:1], y[:1], classes=[0, 1])


def save(model: SGDClassifier) -> dict[str, Any]:
    """Return what training changes."""
    return {name: getattr(model, name) for name in ATTRIBUTES}


sampler = exact_resume.Sampler(num_examples=len(x), global_batch_size=16, seed=0)
with exact_resume.run(
    sys.argv[1] if sys.argv[1:] else os.environ["AIP_CHECKPOINT_DIR"],
    steps=500,
    state={"model": exact_resume.saved(model, save=save, load=lambda values: vars(model).update(values))},
    config={"eta0": model.eta0},
    sampler=sampler,
    code=[__file__],
    save_every_steps=50,
) as run:
    for step in run:
        rows = sampler.shard(step, run)
        if path := os.environ.get("EXAMPLES_SEEN"):
            with open(path, "a") as file:
                print(step, *rows, file=file)
        model.partial_fit(x[rows], y[rows])
    run.result(metrics={"accuracy": float(model.score(x, y))})
print(hashlib.sha256(np.concatenate([model.coef_.ravel(), model.intercept_]).tobytes()).hexdigest())
