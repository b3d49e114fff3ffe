#!/usr/bin/env bash
# kfp 2.17.0: pip cannot resolve it from wheels alone, so neither for another Python nor for another platform.
#
# kfp-server-api, which kfp requires, is published as a source distribution only. `pip download` and `pip install
# --dry-run` with `--python-version` or `--platform` demand `--only-binary=:all:`, and then no version of kfp-server-api
# is left. The error says "from versions: none", not that a wheel is missing. With the build of that one package allowed,
# the same command succeeds.
#
# Seen on 2026-11-29 with pip 26.1 and Python 3.11: the three lines below. Exits with 1 if one changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" --disable-pip-version-check)
"${pip[@]}" install --quiet pip==26.1 2> /dev/null
asked=(install --dry-run --quiet --ignore-installed kfp==2.17.0)
code=0
"${pip[@]}" "${asked[@]}" --only-binary=:all: > "$folder/wheels" 2>&1 || code=$?
named=$(grep -c "Could not find a version that satisfies the requirement kfp-server-api" "$folder/wheels" || true)
echo "from wheels alone: exit code $code, kfp-server-api named: $named"
built=0
"${pip[@]}" "${asked[@]}" --only-binary=:all: --no-binary=kfp-server-api > "$folder/built" 2>&1 || built=$?
echo "with a build of kfp-server-api: exit code $built"
wheels=$("${pip[@]}" download --quiet --no-deps --only-binary=:all: -d "$folder/got" kfp-server-api 2>&1 |
    grep -c "from versions: none" || true)
echo "versions with a wheel: $([ "$wheels" = 1 ] && echo none || echo some)"
[ $code -eq 1 ] && [ "$named" = 1 ] && [ $built -eq 0 ] && [ "$wheels" = 1 ]
