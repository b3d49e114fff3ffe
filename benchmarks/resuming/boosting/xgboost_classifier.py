"""Stop XGBClassifier early, continue it without early stopping, and look which trees predict."""

import json
import warnings

import numpy as np
import xgboost
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

train, test, train_labels, test_labels = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)
options = {"learning_rate": 0.3, "n_jobs": 1, "random_state": 0}
pair = [(test, test_labels)]
first = xgboost.XGBClassifier(n_estimators=200, early_stopping_rounds=5, **options)
first.fit(train, train_labels, eval_set=pair, verbose=False)
plain = xgboost.XGBClassifier(n_estimators=20, **options).fit(train, train_labels)
whole = xgboost.XGBClassifier(n_estimators=40, **options).fit(train, train_labels)
parts = xgboost.XGBClassifier(n_estimators=20, **options).fit(train, train_labels, xgb_model=plain)
cases = {"20 trees and 20, no sampling": float(np.abs(whole.predict_proba(test) - parts.predict_proba(test)).max())}

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    second = xgboost.XGBClassifier(n_estimators=20, **options).fit(train, train_labels, xgb_model=first)
trees = second.get_booster().num_boosted_rounds()
all_trees = second.get_booster().predict(xgboost.DMatrix(test), iteration_range=(0, trees))
if np.array_equal(second.predict_proba(test)[:, 1], all_trees):
    cases["after early stopping, continued without"] = 0
elif np.array_equal(second.predict_proba(test), first.predict_proba(test)):
    cases["after early stopping, continued without"] = "predicts with the trees of the first part alone"
else:
    cases["after early stopping, continued without"] = "predicts with some trees"
versions = {"xgboost": xgboost.__version__}
continued = "`XGBClassifier.fit(xgb_model=)`"
print(json.dumps({"library": "XGBoost", "versions": versions, "continued": continued, "cases": cases}))
