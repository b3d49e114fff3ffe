#!/bin/sh
# ast.parse in several threads of CPython 3.11.2 and 3.11.7 raises SystemError for valid code, now and then: "AST
# constructor recursion depth mismatch". The conversion of a tree counts its depth for the whole interpreter. If the
# collection of garbage runs Python code in one thread meanwhile, another thread may go on and change the count. With
# 3.12.1 and 3.13.0 it did not happen. A lock around ast.parse avoids it.
#
# Seen on 2026-11-29 with Python 3.11.2 and 3.11.7: 20 to 60 errors in 160 calls, none with a lock. Exits with 1 if that
# changes, with 2 without a Python 3.11. Standard library only.
set -eu
python=$(command -v python3.11) || { echo "python3.11 was not found" >&2; exit 2; }
"$python" - <<'PROGRAM'
import ast
import gc
import sys
import threading

with open(ast.__file__) as file:
    source = file.read()
errors = []


class Cycle:
    """Runs code when it is collected."""

    def __init__(self):
        self.itself = self

    def __del__(self):
        for _ in range(50):
            pass


def parse(lock):
    for _ in range(40):
        for _ in range(20):
            Cycle()
        try:
            with lock:
                ast.parse(source)
        except SystemError as error:
            errors.append(str(error))


class NoLock:
    def __enter__(self):
        pass

    def __exit__(self, *_):
        pass


gc.set_threshold(50)
sys.setswitchinterval(1e-6)
counts = []
for lock in (NoLock(), threading.Lock()):
    errors.clear()
    threads = [threading.Thread(target=parse, args=(lock,)) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    counts.append(len(errors))
    print(sys.version.split()[0], type(lock).__name__, "errors:", len(errors), errors[:1])
sys.exit(0 if counts[0] > 0 and counts[1] == 0 else 1)
PROGRAM
