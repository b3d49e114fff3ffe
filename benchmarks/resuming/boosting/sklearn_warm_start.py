"""Train scikit-learn's `warm_start` estimators at once, and in two parts with a pickle between them."""

import json
import pickle
import warnings

import numpy as np
import sklearn
from sklearn.datasets import load_digits
from sklearn.ensemble import GradientBoostingClassifier, HistGradientBoostingClassifier, RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.neural_network import MLPClassifier

warnings.simplefilter("ignore")
examples, labels = load_digits(return_X_y=True)
examples, labels = examples[:600] / 16, labels[:600] % 3
estimators = {
    "RandomForestClassifier": (RandomForestClassifier, "n_estimators", {}),
    "GradientBoostingClassifier with subsample": (GradientBoostingClassifier, "n_estimators", {"subsample": 0.5}),
    "HistGradientBoostingClassifier": (HistGradientBoostingClassifier, "max_iter", {}),
    "MLPClassifier": (MLPClassifier, "max_iter", {}),
    "LogisticRegression, saga": (LogisticRegression, "max_iter", {"solver": "saga"}),
}
cases = {}
for name, (kind, size, options) in estimators.items():
    whole = kind(**{size: 10}, random_state=0, **options).fit(examples, labels)
    parts = kind(**{size: 5}, random_state=0, warm_start=True, **options).fit(examples, labels)
    parts = pickle.loads(pickle.dumps(parts))
    # What grows counts from the start, what iterates counts anew.
    parts.set_params(**{size: 10 if hasattr(parts, "estimators_") or "Hist" in name else 5}).fit(examples, labels)
    cases[name] = float(np.abs(whole.predict_proba(examples) - parts.predict_proba(examples)).max())
versions = {"scikit-learn": sklearn.__version__}
continued = "pickle, then `fit` with `warm_start=True`"
print(json.dumps({"library": "scikit-learn", "versions": versions, "continued": continued, "cases": cases}))
