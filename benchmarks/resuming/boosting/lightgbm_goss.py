"""Train goss in parts of several lengths, and compare each with plain boosting: does it ever sample?"""

import json

import lightgbm
import numpy as np
from sklearn.datasets import load_breast_cancer

examples, labels = load_breast_cancer(return_X_y=True)
common = {"objective": "binary", "num_threads": 1, "deterministic": True, "seed": 1, "verbose": -1}


def train(parameters, parts):
    """Train in parts, each on top of the one before."""
    booster = None
    for rounds in parts:
        data = lightgbm.Dataset(examples, labels, params={"verbose": -1})
        booster = lightgbm.train(common | parameters, data, rounds, init_model=booster)
    return booster.predict(examples)


cases = {}
for rate, parts in ((0.1, [10, 10]), (0.1, [15, 15]), (0.25, [10, 10])):
    goss, rounds = {"data_sample_strategy": "goss", "learning_rate": rate}, sum(parts)
    divided, whole, plain = train(goss, parts), train(goss, [rounds]), train({"learning_rate": rate}, [rounds])
    name = f"{parts[0]} rounds and {parts[1]}, learning rate {rate}"
    # The trees of the parts are those of boosting that never samples.
    is_plain = np.allclose(divided, plain, rtol=0, atol=1e-12)
    cases[name] = "never samples" if is_plain else float(np.abs(divided - whole).max())
    assert np.abs(whole - plain).max() > 1e-6
versions = {"lightgbm": lightgbm.__version__}
continued = "`init_model=`, with goss"
print(json.dumps({"library": "LightGBM", "versions": versions, "continued": continued, "cases": cases}))
