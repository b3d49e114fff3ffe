"""The vendored packages of the console: what is shipped is what the lock names, unchanged and with its licenses."""

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from localvertex.show.bundle import FOLDER

VENDOR = FOLDER / "vendor"
ALLOWED = {"MIT", "Apache-2.0"}
"""The licenses whose code may be in an Apache-2.0 package."""


@pytest.fixture(scope="module")
def packages() -> Any:
    return json.loads((VENDOR / "vendor.json").read_text())


@pytest.fixture(scope="module")
def lock(package: Path) -> Any:
    return json.loads((package / "requirements" / "npm" / "package-lock.json").read_text())["packages"]


def test_the_folder_has_the_listed_files_and_no_others(package: Path, packages: Any) -> None:
    listed = {name: sha256 for each in packages.values() for name, sha256 in each["files"].items()}
    # Of the checkout: an installation has no types.
    folder = package / "localvertex" / "console" / "page" / "vendor"
    found = {path.name: path.read_bytes() for path in folder.iterdir()}
    assert set(found) == {*listed, "vendor.json", "licenses.txt"}
    assert {name: hashlib.sha256(found[name]).hexdigest() for name in listed} == listed, (
        "run requirements/npm/vendor.py"
    )


def test_versions_and_licenses_are_those_of_the_lock(packages: Any, lock: Any) -> None:
    text = (VENDOR / "licenses.txt").read_text()
    for name, each in packages.items():
        locked = lock[f"node_modules/{name}"]
        assert (each["version"], each["license"]) == (locked["version"], locked["license"])
        assert each["license"] in ALLOWED
        assert f"{name} {each['version']}\n" in text
    assert len(re.findall("^-{80}$", text, re.M)) == len(packages) - 1
    assert text.count("MIT License") >= 2
    assert "Apache License" in text


def test_the_lock_pins_each_version_and_names_no_registry(package: Path, lock: Any) -> None:
    wanted = json.loads((package / "requirements" / "npm" / "package.json").read_text())["devDependencies"]
    assert {name: lock[f"node_modules/{name}"]["version"] for name in wanted} == wanted
    text = (package / "requirements" / "npm" / "package-lock.json").read_text()
    assert '"resolved"' not in text
    assert all(each.get("integrity", "").startswith("sha512-") for name, each in lock.items() if name)


def test_axe_is_the_version_of_the_lock(package: Path, lock: Any) -> None:
    text = (package / "tests" / "data" / "axe.min.js").read_text()
    assert text.startswith(f"/*! axe v{lock['node_modules/axe-core']['version']}\n")


def test_vendored_scripts_need_no_eval_and_load_nothing() -> None:
    for path in VENDOR.glob("*.js"):
        text = path.read_text()
        assert not re.search(r"\beval\(|\bFunction\(|importScripts|fetch\(|XMLHttpRequest", text), path
        assert set(re.findall(r"""\bimport\b[^;]*?from\s*["']([^"']+)["']""", text)) <= {"./preact.js"}, path
