"""Trains two models with autolog at an endpoint, and prints what the experiment has. Arguments: its URL, a token."""

import sys

import google.oauth2.credentials
from google.cloud import aiplatform
from sklearn.datasets import load_iris
from sklearn.linear_model import LogisticRegression

aiplatform.init(
    project="local-project",
    location="us-central1",
    api_endpoint=sys.argv[1],
    api_transport="rest",
    credentials=google.oauth2.credentials.Credentials(sys.argv[2]),
    experiment="auto",
)
aiplatform.autolog()
rows, kinds = load_iris(return_X_y=True)
LogisticRegression(C=0.5, max_iter=300).fit(rows, kinds)
with aiplatform.start_run("named"):
    LogisticRegression(C=0.25, max_iter=300).fit(rows, kinds)
aiplatform.autolog(disable=True)
for _, run in aiplatform.get_experiment_df("auto").iterrows():
    name = run["run_name"].partition("-")[0]
    print("run", name, run["state"], run["param.C"], run["metric.training_accuracy_score"] > 0.9)
