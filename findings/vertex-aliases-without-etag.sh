#!/usr/bin/env bash
# google-cloud-aiplatform 1.165.1: aliases of a model version have no compare-and-set.
#
# `Model` and `Endpoint` have an etag "used to perform a consistent read-modify-write", and `updateModel` sends the
# model's. Aliases, by which most projects mark the model in use, are changed by `mergeVersionAliases` alone, whose
# request has a name and aliases and nothing to compare with; `updateModel` does not change them. Two runs that each
# compare their model with the champion and then move the alias can therefore only detect the other one afterwards.
#
# Seen on 2026-11-28 with Python 3.11: the two lines below. Exits with 1 if the request gains another field.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check google-cloud-aiplatform==1.165.1
"$folder/venv/bin/python" - <<'PYTHON'
from google.cloud import aiplatform_v1 as v1

kinds = (v1.MergeVersionAliasesRequest, v1.Model)
fields = {kind.__name__: sorted(kind.pb(kind()).DESCRIPTOR.fields_by_name) for kind in kinds}
print("MergeVersionAliasesRequest:", fields["MergeVersionAliasesRequest"])
print("Model has an etag:", "etag" in fields["Model"])
raise SystemExit(fields["MergeVersionAliasesRequest"] != ["name", "version_aliases"])
PYTHON
