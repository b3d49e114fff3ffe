"""Train 20 trees in CatBoost at once, and as 10 and 10 with `init_model=`."""

import json
import tempfile
from pathlib import Path

import catboost
import numpy as np
from sklearn.datasets import load_breast_cancer

examples, labels = load_breast_cancer(return_X_y=True)
common = {"thread_count": 1, "verbose": False, "allow_writing_files": False, "random_seed": 1}
plain = {"bootstrap_type": "No", "random_strength": 0, "boosting_type": "Plain", "learning_rate": 0.3}
options = {
    "no randomness, a fixed rate": plain,
    "random_strength": plain | {"random_strength": 1},
    "Bernoulli sampling": plain | {"bootstrap_type": "Bernoulli", "subsample": 0.5},
    "Bayesian sampling": plain | {"bootstrap_type": "Bayesian"},
}
cases = {}


def train(parameters, trees, before=None):
    """Train some trees on top of a model."""
    return catboost.CatBoostClassifier(iterations=trees, **common | parameters).fit(examples, labels, init_model=before)


with tempfile.TemporaryDirectory() as folder:
    file = str(Path(folder) / "model.cbm")
    for name, each in options.items():
        whole = train(each, 20)
        train(each, 10).save_model(file)
        parts = train(each, 10, file)
        assert parts.tree_count_ == 20
        gap = float(np.abs(whole.predict_proba(examples) - parts.predict_proba(examples)).max())
        cases[name] = 0 if gap < 1e-13 else gap
rates = [train({}, trees).get_all_params()["learning_rate"] for trees in (20, 10)]
cases["the automatic learning rate"] = (
    0 if rates[0] == rates[1] else f"{rates[0]:.2g} for 20 trees, {rates[1]:.2g} for 10"
)
versions = {"catboost": catboost.__version__}
continued = "`init_model=` a saved model, 10 trees and 10"
print(json.dumps({"library": "CatBoost", "versions": versions, "continued": continued, "cases": cases}))
