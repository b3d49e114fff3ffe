#!/usr/bin/env bash
# pip 26.1: a package whose installation was killed counts as installed.
#
# The folder NAME.dist-info, by which pip and importlib.metadata find a package, is copied with the files of the wheel;
# INSTALLER, REQUESTED and RECORD are written after all of them. If the process is killed in between, the same `pip install`
# later prints "Requirement already satisfied" and ends with 0, and `pip check` finds nothing, while modules are missing.
# Only the absence of RECORD tells such a package from a whole one.
#
# The kill is played by removing what comes last. Seen on 2026-11-29 with Python 3.11: the four lines below. Exits with
# 1 if one changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
pip=("$folder/venv/bin/pip" --disable-pip-version-check)
"${pip[@]}" install --quiet pip==26.1 iniconfig==2.3.0
site=$("$folder/venv/bin/python" -c 'import sysconfig; print(sysconfig.get_path("purelib"))')
last=$(cd "$site" && find iniconfig iniconfig-2.3.0.dist-info -type f -printf '%T+ %p\n' | grep -v '\.pyc$' | sort | tail -3 |
    sed 's|.*/||' | sort | tr '\n' ' ')
echo "written last: $last"
rm "$site"/iniconfig-2.3.0.dist-info/{INSTALLER,REQUESTED,RECORD} "$site"/iniconfig/__init__.py
answer=$("${pip[@]}" install iniconfig==2.3.0 2> /dev/null | grep -o "Requirement already satisfied")
echo "install: $answer"
echo "check: $("${pip[@]}" check)"
imported=0
"$folder/venv/bin/python" -c 'import iniconfig; iniconfig.IniConfig' 2> /dev/null || imported=$?
echo "its module is broken: $([ $imported -ne 0 ] && echo yes || echo no)"
[ "$last" = "INSTALLER RECORD REQUESTED " ] && [ "$answer" = "Requirement already satisfied" ] && [ $imported -ne 0 ]
