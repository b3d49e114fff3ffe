"""Train 20 trees in XGBoost at once, and as 10 and 10 with `xgb_model=`, with each kind of sampling."""

import json
import tempfile
from pathlib import Path

import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer

examples, labels = load_breast_cancer(return_X_y=True)
data = xgboost.DMatrix(examples, labels)
common = {"objective": "binary:logistic", "eta": 0.1, "seed": 1, "nthread": 1}
options = {
    "no sampling": {},
    "linear booster, cyclic": {"booster": "gblinear", "feature_selector": "cyclic", "updater": "coord_descent"},
    "subsample": {"subsample": 0.5},
    "subsample and seed_per_iteration": {"subsample": 0.5, "seed_per_iteration": True},
    "colsample_bytree": {"colsample_bytree": 0.5},
    "num_parallel_tree": {"num_parallel_tree": 3, "subsample": 0.5},
    "dart": {"booster": "dart", "rate_drop": 0.3},
    "dart, rate_drop 0": {"booster": "dart", "rate_drop": 0},
}
cases = {}
with tempfile.TemporaryDirectory() as folder:
    file = Path(folder) / "model.ubj"
    for name, each in options.items():
        parameters = common | each
        whole = xgboost.train(parameters, data, 20)
        xgboost.train(parameters, data, 10).save_model(file)
        parts = xgboost.train(parameters, data, 10, xgb_model=file)
        assert parts.num_boosted_rounds() == 20
        cases[name] = float(np.abs(whole.predict(data) - parts.predict(data)).max())
print(
    json.dumps(
        {
            "library": "XGBoost",
            "versions": {"xgboost": xgboost.__version__},
            "continued": "`xgb_model=` a saved model, 10 rounds and 10",
            "cases": cases,
        }
    )
)
