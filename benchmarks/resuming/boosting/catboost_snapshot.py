"""Kill CatBoost with a snapshot and start it again: with the same data, and with something else."""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import catboost
import numpy as np
from sklearn.datasets import load_breast_cancer

examples, labels = load_breast_cancer(return_X_y=True)


def fit(folder, *, trees=300, labels=labels, examples=examples, weights=None, callbacks=None, **options):
    """Train with sampling, and with a snapshot in the folder."""
    given = {"depth": 4, "learning_rate": 0.05, "bootstrap_type": "Bernoulli", "subsample": 0.5, "random_seed": 0}
    given |= {"thread_count": 1, "verbose": False, "snapshot_interval": 0, "save_snapshot": True}
    model = catboost.CatBoostClassifier(iterations=trees, train_dir=folder, **given | options)
    return model.fit(examples, labels, sample_weight=weights, callbacks=callbacks)


class Paced:
    """Gives the program that kills some time, or stops half-way."""

    def __init__(self, stop=False):
        self.stop = stop

    def after_iteration(self, info):
        """Wait after each tree, or stop at tree 150."""
        time.sleep(0 if self.stop else 0.02)
        return not (self.stop and info.iteration == 150)


if len(sys.argv) > 1:
    fit(sys.argv[1], callbacks=[Paced()])
    sys.exit()
cases = {}
with tempfile.TemporaryDirectory() as folder:
    whole = fit(f"{folder}/whole").predict_proba(examples)
    longer = fit(f"{folder}/longer", trees=400).predict_proba(examples)
    process = subprocess.Popen([sys.executable, __file__, f"{folder}/killed"])
    while not [*Path(folder).glob("killed/*snapshot*")]:
        time.sleep(0.05)
    time.sleep(1.5)
    process.kill()
    process.wait()
    others = {
        "after SIGKILL": None,
        "after a stop by a callback": {},
        "other labels": {"labels": 1 - labels},
        "other weights": {"weights": 1.0 + labels},
        "with more trees": {"trees": 400},
        "another depth": {"depth": 6},
        "another number of features": {"examples": examples[:, :20]},
    }
    for name, each in others.items():
        if each is not None:
            fit(f"{folder}/{name}", callbacks=[Paced(stop=True)])
        try:
            model = fit(f"{folder}/{name}" if each is not None else f"{folder}/killed", **each or {})
        except catboost.CatBoostError:
            cases[name] = "refused: CatBoostError"
        else:
            gap = float(np.abs(model.predict_proba(examples) - (longer if each else whole)).max())
            cases[name] = "accepted silently" if name.startswith(("other", "another")) else gap
versions = {"catboost": catboost.__version__}
continued = "`save_snapshot=True`, then `fit` again"
print(json.dumps({"library": "CatBoost", "versions": versions, "continued": continued, "cases": cases}))
