#!/usr/bin/env bash
# Pillow 12.3.0: the comment of a GIF goes into a JPEG, though `convert` and `resize` lie between, and may not fit.
#
# Saving as JPEG writes `info["comment"]`, which `convert`, `resize`, `crop` and `copy` hand on from the opened file, so
# that pixels that are equal become files that differ, and a comment that should not be published is. PNG and WebP
# do not. A GIF's comment has no limit and a JPEG's has 65,533 bytes: with a longer one the image cannot be saved, and
# the error is "broken data stream when writing image file", which names neither the comment nor a limit.
#
# Seen on 2026-11-28 with Python 3.11: the lines below. Exits with 1 if one changes.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check pillow==12.3.0
"$folder/venv/bin/python" - <<'PYTHON'
import io

from PIL import Image


def saved(num_bytes, name):
    gif, target = io.BytesIO(), io.BytesIO()
    Image.new("P", (8, 8), 0).save(gif, "GIF", comment=b"x" * num_bytes)
    image = Image.open(io.BytesIO(gif.getvalue())).convert("RGB").resize((4, 4))
    try:
        image.save(target, name)
    except OSError as error:
        return str(error)
    return b"x" * min(num_bytes, 100) in target.getvalue()


found = {(length, name): saved(length, name) for length in (1000, 70_000) for name in ("JPEG", "PNG", "WEBP")}
for (length, name), answer in found.items():
    print(f"comment of {length} bytes, {name}:", {True: "kept", False: "dropped"}.get(answer, answer))
expected = {1000: True, 70_000: "broken data stream when writing image file"}
raise SystemExit(any(found[key] != (expected[key[0]] if key[1] == "JPEG" else False) for key in found))
PYTHON
