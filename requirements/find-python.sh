# Prints the first Python that the lock files support, or nothing.
for candidate in ${PYTHON:-python3 python3.13 python3.12 python3.11 python}; do
    if "$candidate" -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null; then
        echo "$candidate"
        exit 0
    fi
done
