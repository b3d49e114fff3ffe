#!/usr/bin/env bash
# pandas 1.5.0 on Python 3.9: a plain installation gets NumPy 2, and the import fails.
#
# pandas 1.5 was built against NumPy 1, and its metadata sets no upper bound: pip installs NumPy 2.0.2, and
# `import pandas` ends with "numpy.dtype size changed". A pin of pandas alone, as in pages from 2022, is not enough.
# With numpy<2 beside it, it works. Needs python3.9.
#
# Seen on 2026-11-29 with Python 3.9.18: the three lines below. Exits with 1 if one changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.9 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pandas==1.5.0
numpy=$("$folder/venv/bin/python" -c "import numpy; print(numpy.__version__)")
echo "numpy beside pandas 1.5.0: $numpy"
message=$("$folder/venv/bin/python" -c "import pandas" 2>&1 | tail -1 || true)
echo "import: $message"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check "numpy<2"
after=$("$folder/venv/bin/python" -W ignore -c "import numpy, pandas; print('works with numpy', numpy.__version__)")
echo "after numpy<2: $after"
[[ $numpy == 2.* && $message == *"numpy.dtype size changed"* && $after == works* ]]
