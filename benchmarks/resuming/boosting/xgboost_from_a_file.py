"""Continue XGBoost from a file and from the Booster object, and look whether the sampled rows are those of before."""

import json
import tempfile
from pathlib import Path

import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer

examples, labels = load_breast_cancer(return_X_y=True)
data = xgboost.DMatrix(examples, labels)
parameters = {"objective": "binary:logistic", "eta": 0.1, "seed": 1, "nthread": 1, "subsample": 0.5, "max_depth": 1}


def sampled(booster, first):
    """Return the weights of the roots of 10 trees whose gradients are equal: a fingerprint of the sampled rows."""
    trees = booster.trees_to_dataframe()
    roots = trees[(trees.Node == 0) & (trees.Tree >= first)]
    return roots.Cover.tolist()


def constant(predictions, matrix):
    """Give each example a hessian of its own that does not depend on the model."""
    return matrix.get_label() - 0.5, 1 + np.arange(len(predictions), dtype=np.float32)


with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "model.ubj"
    first = xgboost.train(parameters, data, 10, obj=constant)
    first.save_model(file)
    from_object = xgboost.train(parameters, data, 10, xgb_model=first, obj=constant)
    from_file = xgboost.train(parameters, data, 10, xgb_model=file, obj=constant)
whole = xgboost.train(parameters, data, 20, obj=constant)
rows = sampled(whole, 0)
cases = {}
for name, booster in {"from the Booster object": from_object, "from a file": from_file}.items():
    later = sampled(booster, 10)
    if later == rows[10:]:
        cases[name] = 0
    elif later == rows[:10]:
        cases[name] = "draws the rows of the first part again"
    else:
        cases[name] = "draws rows of neither part"
for seed in (1, 2):
    other = xgboost.train(parameters | {"seed": seed}, data, 10, xgb_model=first, obj=constant)
    if seed == 2:
        cases["another seed for the second part"] = (
            "draws other rows" if sampled(other, 10) not in (rows[:10], rows[10:]) else "draws the same rows"
        )
print(
    json.dumps(
        {
            "library": "XGBoost",
            "versions": {"xgboost": xgboost.__version__},
            "continued": "`xgb_model=`, with `subsample`",
            "cases": cases,
        }
    )
)
