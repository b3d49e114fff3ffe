#!/usr/bin/env bash
# scikit-learn 1.9.1: whether `partial_fit` changes a fitted array in place or makes another one differs within a model.
#
# A program that keeps references to fitted arrays, to save them and to copy saved values into them after a restart, is
# right for an estimator's coef_ and wrong for its intercept_. Nothing documents which array is which, and the number
# of classes changes it: SGDClassifier keeps intercept_ with three classes, and makes another with two.
#
# Seen on 2026-11-28 with Python 3.11 and numpy 2.4.6: the table below. Exits with 1 if a cell changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check scikit-learn==1.9.1 numpy==2.4.6
"$folder/venv/bin/python" - <<'PYTHON'
import numpy as np
from sklearn.cluster import MiniBatchKMeans
from sklearn.decomposition import IncrementalPCA, MiniBatchNMF
from sklearn.linear_model import SGDClassifier, SGDOneClassSVM, SGDRegressor
from sklearn.naive_bayes import GaussianNB, MultinomialNB
from sklearn.neural_network import MLPClassifier
from sklearn.preprocessing import StandardScaler

ROWS = np.abs(np.random.default_rng(0).normal(size=(40, 3)))
TWO, THREE = np.arange(40) % 2, np.arange(40) % 3
EXPECTED = {
    "SGDClassifier, 2 classes": (SGDClassifier(), TWO, "coef_", "intercept_"),
    "SGDClassifier, 3 classes": (SGDClassifier(), THREE, "coef_ intercept_", ""),
    "SGDRegressor": (SGDRegressor(), TWO, "coef_", "intercept_"),
    "SGDOneClassSVM": (SGDOneClassSVM(), None, "coef_", "offset_"),
    "MLPClassifier": (MLPClassifier(), THREE, "coefs_ intercepts_", ""),
    "GaussianNB": (GaussianNB(), THREE, "class_count_ theta_ var_", "class_prior_"),
    "MultinomialNB": (
        MultinomialNB(), THREE, "class_count_ feature_count_", "class_log_prior_ feature_log_prob_"
    ),
    "MiniBatchKMeans": (MiniBatchKMeans(), None, "cluster_centers_", "labels_"),
    "MiniBatchNMF": (MiniBatchNMF(), None, "components_", ""),
    "StandardScaler": (StandardScaler(), None, "", "mean_ scale_ var_"),
    "IncrementalPCA": (
        IncrementalPCA(),
        None,
        "",
        "components_ explained_variance_ explained_variance_ratio_ mean_ singular_values_ var_",
    ),
}


def fitted(model):
    values = {key: value for key, value in vars(model).items() if key.endswith("_") and key != "classes_"}
    values |= {key: value[0] for key, value in values.items() if isinstance(value, list) and value}
    return {key: value for key, value in values.items() if isinstance(value, np.ndarray)}


wrong = 0
for name, (model, labels, kept, made) in EXPECTED.items():
    rest = [] if labels is None else [labels]
    first = {"classes": np.unique(labels)} if name.startswith(("SGDC", "MLP")) or "NB" in name else {}
    model.partial_fit(ROWS, *rest, **first)
    before = fitted(model)
    model.partial_fit(ROWS[::-1] * 1.5, *rest)
    after = fitted(model)
    in_place = [key for key in sorted(before) if np.shares_memory(before[key], after[key])]
    another = [key for key in sorted(before) if key not in in_place]
    wrong += in_place != kept.split() or another != made.split()
    print(f"{name:25} in place: {' '.join(in_place) or '-':28} another: {' '.join(another) or '-'}")
raise SystemExit(wrong > 0)
PYTHON
