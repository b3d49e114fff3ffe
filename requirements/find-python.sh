# Prints a Python that the locks are made for; exits 2 with one line where there is none.
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
        echo "$candidate"
        exit 0
    fi
done
echo "found no Python 3.11, 3.12 or 3.13 with venv and pip (looked for ${PYTHON:-python3, python3.13, python3.12, python3.11, python}); install one, or name it: make venv PYTHON=/path/to/python3.12" >&2
exit 2
