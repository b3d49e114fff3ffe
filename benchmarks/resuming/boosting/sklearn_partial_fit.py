"""Pickle estimators of scikit-learn in the middle of `partial_fit`, load them, and train on."""

import json
import pickle

import numpy as np
import sklearn
from sklearn.cluster import Birch, MiniBatchKMeans
from sklearn.datasets import load_digits
from sklearn.linear_model import SGDClassifier
from sklearn.neural_network import MLPClassifier

examples, labels = load_digits(return_X_y=True)
batches = np.array_split(np.random.default_rng(0).permutation(len(examples)), 20)
classes = {"classes": range(10)}
estimators = {
    "SGDClassifier": (SGDClassifier(random_state=0), classes),
    "SGDClassifier, averaged": (SGDClassifier(random_state=0, average=True), classes),
    "MLPClassifier, adam": (MLPClassifier([16], random_state=0), classes),
    "MLPClassifier, sgd with momentum": (MLPClassifier([16], random_state=0, solver="sgd"), classes),
    "MiniBatchKMeans": (MiniBatchKMeans(10, random_state=0), {}),
    "Birch": (Birch(threshold=20.0, n_clusters=None), {}),
}


def train(estimator, options, stop):
    """Train on all batches, pickled and loaded before one of them; return what it predicts."""
    for number, rows in enumerate(batches):
        if number == stop:
            estimator = pickle.loads(pickle.dumps(estimator))
        estimator.partial_fit(examples[rows], *([labels[rows]] if options else []), **options)
    predict = getattr(estimator, "predict_proba", None) or getattr(estimator, "decision_function", estimator.predict)
    return np.asarray(predict(examples), dtype=float)


cases = {}
for name, (estimator, options) in estimators.items():
    new = sklearn.clone(estimator)
    whole = train(new, options, None)
    try:
        parts = train(sklearn.clone(estimator), options, 10)
    except Exception as error:
        cases[name] = type(error).__name__
        continue
    cases[name] = float(np.abs(whole - parts).max())
    if name == "Birch" and cases[name]:
        cases[name] = f"{(whole != parts).mean():.0%} of the examples in another cluster"
versions = {"scikit-learn": sklearn.__version__}
continued = "pickle in the middle of `partial_fit`"
print(json.dumps({"library": "scikit-learn", "versions": versions, "continued": continued, "cases": cases}))
