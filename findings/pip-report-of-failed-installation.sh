#!/usr/bin/env bash
# pip 26.1: the report of an installation is complete before anything is installed and stays when that fails.
#
# `pip install --report FILE`, or the variable PIP_REPORT, writes a JSON file with a list called "install". Its text in
# the manual, "a report on what pip did to install", reads as if it were written last. It is written after the
# resolution: an installation that then fails leaves a report of packages that are not there, with nothing
# in it that says so. Read through a pipe it shows what is about to be installed, with versions and addresses.
#
# Seen on 2026-11-28 with Python 3.11: the three lines below. Exits with 1 if one of them changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" --disable-pip-version-check)
"${pip[@]}" install --quiet pip==26.1
touch "$folder/a-file"
code=0
PIP_REPORT="$folder/report.json" "${pip[@]}" install --quiet --target "$folder/a-file/below" iniconfig==2.3.0 \
    2> "$folder/errors" || code=$?
echo "exit code: $code"
[ -s "$folder/errors" ] && echo "it printed an error"
"$folder/venv/bin/python" - "$folder/report.json" "$code" <<'PYTHON'
import json
import sys

with open(sys.argv[1]) as file:
    report = json.load(file)
names = [each["metadata"]["name"] for each in report["install"]]
print('"install":', names, "other fields:", sorted(report.keys() - {"install", "environment"}))
raise SystemExit(sys.argv[2] == "0" or names != ["iniconfig"])
PYTHON
