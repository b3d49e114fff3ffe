"""Prune trials of LightGBM under Optuna, stop the study, and continue it from its storage."""

import json
import tempfile
from pathlib import Path

import lightgbm
import optuna
from sklearn.datasets import load_breast_cancer
from sklearn.model_selection import train_test_split

optuna.logging.set_verbosity(optuna.logging.ERROR)
train, test, train_labels, test_labels = train_test_split(*load_breast_cancer(return_X_y=True), random_state=0)


def objective(trial):
    """Return the loss of a small model with two parameters of the trial."""
    parameters = {"objective": "binary", "num_threads": 1, "deterministic": True, "verbose": -1, "seed": 1}
    parameters["learning_rate"] = trial.suggest_float("learning_rate", 0.01, 0.5, log=True)
    parameters["num_leaves"] = trial.suggest_int("num_leaves", 2, 31)
    data = lightgbm.Dataset(train, train_labels, params={"verbose": -1})
    probabilities = lightgbm.train(parameters, data, 10).predict(test)
    return float(((probabilities - test_labels) ** 2).mean())


def trials(make_sampler, parts, restored=None):
    """Run a study in parts, each as another process would; return the parameters of its trials."""
    with tempfile.TemporaryDirectory() as folder:
        storage, kept = f"sqlite:///{Path(folder) / 'study.db'}", None
        for number in parts:
            sampler = kept if kept is not None and restored else make_sampler()
            study = optuna.create_study(storage=storage, study_name="s", sampler=sampler, load_if_exists=True)
            study.optimize(objective, n_trials=number)
            kept = study.sampler
        return [each.params for each in study.trials]


def tpe():
    """Return the default sampler, with a seed."""
    return optuna.samplers.TPESampler(seed=1, n_startup_trials=4)


whole, parts = trials(tpe, [12]), trials(tpe, [6, 6])
equal = sum(a == b for a, b in zip(whole, parts, strict=True))
again = sum(each in parts[:6] for each in parts[6:])
cases = {"the same seed again": 0 if equal == 12 else f"{12 - equal} of 12 trials are others, {again} repeat one"}
random = trials(lambda: optuna.samplers.RandomSampler(seed=1), [12])
parts = trials(lambda: optuna.samplers.RandomSampler(seed=1), [6, 6])
equal = sum(a == b for a, b in zip(random, parts, strict=True))
again = sum(each in parts[:6] for each in parts[6:])
cases["RandomSampler, the same seed again"] = f"{12 - equal} of 12 trials are others, {again} repeat one"
cases["with the sampler object that was kept"] = 0 if trials(tpe, [6, 6], restored=True) == whole else "other trials"
versions = {"optuna": optuna.__version__, "lightgbm": lightgbm.__version__}
continued = "LightGBM under Optuna, `load_if_exists=True`"
print(json.dumps({"library": "Optuna", "versions": versions, "continued": continued, "cases": cases}))
