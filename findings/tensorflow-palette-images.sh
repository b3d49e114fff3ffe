#!/usr/bin/env bash
# TensorFlow 2.21.0: `decode_image` reads a palette BMP as gray indices, and transparent pixels of a GIF as black.
#
# An 8-bit BMP with a palette, the usual one of scanners and old Windows programs, comes back as one channel with the
# numbers of the colors instead of the colors: a red and blue image is 0 and 1, almost black, without an error. Pixels
# of a GIF's transparent color are 0, 0, 0, where Pillow 12.3.0 gives the palette's color after `convert("RGB")`. A
# model trained on pixels of one reader sees others from the second.
#
# Seen on 2026-11-28 with Python 3.11: the lines below. Exits with 1 if TensorFlow's values change.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3 -m venv "$folder/venv"
"$folder/venv/bin/pip" install --quiet --disable-pip-version-check tensorflow-cpu==2.21.0 pillow==12.3.0
TF_CPP_MIN_LOG_LEVEL=3 "$folder/venv/bin/python" - <<'PYTHON'
import io

import numpy as np
import tensorflow as tf
from PIL import Image

RED, BLUE = (200, 30, 60), (20, 180, 240)
left_red = Image.new("P", (8, 8), 0)
left_red.putpalette([*RED, *BLUE] + [0] * 762)
left_red.paste(1, (4, 0, 8, 8))


def read(name, **options):
    file = io.BytesIO()
    left_red.save(file, name, **options)
    by_tensorflow = tf.io.decode_image(file.getvalue(), expand_animations=False).numpy()
    by_pillow = np.array(Image.open(io.BytesIO(file.getvalue())).convert("RGB"))
    ends = by_tensorflow[0, [0, 7]].tolist()
    print(f"{name} {options or ''}: TensorFlow {by_tensorflow.shape} {ends}, Pillow {by_pillow[0, [0, 7]].tolist()}")
    return ends


same = read("PNG") == read("GIF") == [[*RED], [*BLUE]]
same &= read("BMP") == [[0], [1]]
same &= read("GIF", transparency=0) == [[0, 0, 0], [*BLUE]]
raise SystemExit(not same)
PYTHON
