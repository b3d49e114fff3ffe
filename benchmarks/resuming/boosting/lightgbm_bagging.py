"""Train 20 trees in LightGBM at once, and as 10 and 10 with `init_model=`."""

import json

import lightgbm
import numpy as np
from sklearn.datasets import load_breast_cancer

examples, labels = load_breast_cancer(return_X_y=True)
common = {"objective": "binary", "learning_rate": 0.1, "num_threads": 1, "deterministic": True, "seed": 1}
common |= {"verbose": -1}
options = {
    "no sampling": {},
    "bagging": {"bagging_fraction": 0.5, "bagging_freq": 1},
    "feature_fraction": {"feature_fraction": 0.5},
    "extra_trees": {"extra_trees": True},
    "quantized gradients": {"use_quantized_grad": True},
    "linear_tree": {"linear_tree": True},
    "dart": {"boosting": "dart"},
    "dart, drop_rate 0": {"boosting": "dart", "drop_rate": 0},
    "rf": {"boosting": "rf", "bagging_fraction": 0.5, "bagging_freq": 1},
}


def train(parameters, rounds, before=None):
    """Train with a dataset of its own: the object keeps the scores of the model that it started from."""
    data = lightgbm.Dataset(examples, labels, params={"verbose": -1})
    return lightgbm.train(parameters, data, rounds, init_model=before)


cases = {}
for name, each in options.items():
    whole, first = train(common | each, 20), train(common | each, 10)
    try:
        parts = train(common | each, 10, lightgbm.Booster(model_str=first.model_to_string(num_iteration=-1)))
    except lightgbm.basic.LightGBMError:
        cases[name] = "LightGBMError"
        continue
    assert parts.num_trees() == 20
    cases[name] = float(np.abs(whole.predict(examples) - parts.predict(examples)).max())
versions = {"lightgbm": lightgbm.__version__}
continued = "`init_model=` a saved model, 10 rounds and 10"
print(json.dumps({"library": "LightGBM", "versions": versions, "continued": continued, "cases": cases}))
