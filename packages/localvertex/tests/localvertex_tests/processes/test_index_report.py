"""What comes from an index is listed with its version and its host before it is installed, and nothing else is."""

import json
import os
import sys
import zipfile
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from kfp import dsl
from localvertex_tests.processes.test_environments import make_wheel

from localvertex.processes import index_report
from localvertex.processes.index_report import listed
from localvertex.processes.processes import Processes
from localvertex.values.configuration import Configuration
from vertex_testing.runs import Execute, FindTask


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, *_: Any) -> None:
        """Write no log."""


class Index:
    """An index on this machine."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        self.server = ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(folder)))
        self.host = f"127.0.0.1:{self.server.server_port}"
        Thread(target=self.server.serve_forever, daemon=True).start()

    def add(self, name: str, version: str, requires: str = "", extra: str = "") -> None:
        place = self.folder / name
        place.mkdir(exist_ok=True)
        path = Path(make_wheel(place, version, name))
        with zipfile.ZipFile(path) as old:
            content = {each: old.read(each).decode() for each in old.namelist()}
        content[f"{name}-{version}.dist-info/METADATA"] += f"Requires-Dist: {requires}\n" * bool(requires)
        if extra:
            content[extra] = ""
        with zipfile.ZipFile(path, "w") as new:
            for each, text in content.items():
                new.writestr(each, text)


@pytest.fixture
def indexes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[list[Index]]:
    found = [Index(tmp_path / "first"), Index(tmp_path / "second")]
    for name in ("PIP_NO_INDEX", "PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_CONSTRAINT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("PIP_CONFIG_FILE", os.devnull)
    monkeypatch.setenv("PIP_INDEX_URL", f"http://user:secret-of-mine@{found[0].host}")
    monkeypatch.setenv("PIP_EXTRA_INDEX_URL", f"http://{found[1].host}")
    yield found
    for each in found:
        each.server.shutdown()
        each.server.server_close()


def using(*packages: str) -> Any:
    @dsl.component(base_image="python:3.11", packages_to_install=[*packages], install_kfp_package=False)
    def use() -> str:
        import tinypkg

        return tinypkg.VERSION

    @dsl.pipeline(name="uses")
    def uses() -> None:
        use()

    return uses


def lines(record: dict[str, Any]) -> list[str]:
    return [text for text in record["warnings"] if "installing from" in text]


@pytest.mark.slow
def test_packages_and_what_they_need_are_listed_once_with_versions_and_hosts(
    execute: Execute, task: FindTask, indexes: list[Index]
) -> None:
    """A package that another index has in a higher version is seen to come from there."""
    first, second = indexes
    first.add("tinypkg", "1.0", "needed")
    second.add("tinypkg", "9.0", "needed")
    first.add("needed", "2.5")
    expected = {f"installing from {first.host}: needed 2.5", f"installing from {second.host}: tinypkg 9.0"}
    for number in range(2):
        record = execute(using("tinypkg"), use_cache=False)
        assert task(record, "use")["outputs"]["parameters"]["Output"] == "9.0"
        # The environment of the first run is used again.
        (found,) = lines(record) or [""]
        assert found.startswith("use: ") == (not number)
        assert set(found.removeprefix("use: ").split("; ")) == (expected if not number else {""})
        assert "secret-of-mine" not in json.dumps(record)


@pytest.mark.slow
def test_the_list_comes_before_the_installation(execute: Execute, indexes: list[Index]) -> None:
    """A package that pip chooses and cannot install is in the record."""
    indexes[0].add("tinypkg", "1.0", extra="../../outside.py")
    record = execute(using("tinypkg"))
    assert record["state"] == "FAILED"
    assert "installing the packages failed" in record["error"]
    assert lines(record) == [f"use: installing from {indexes[0].host}: tinypkg 1.0"]


@pytest.mark.slow
def test_packages_of_an_image_are_listed_and_a_file_that_was_named_is_not(
    execute: Execute, tmp_path: Path, indexes: list[Index]
) -> None:
    indexes[0].add("other", "1.1")

    @dsl.container_component
    def run() -> dsl.ContainerSpec:
        return dsl.ContainerSpec(image="image", command=["python3", "-c", "import other, tinypkg"])

    @dsl.pipeline(name="runs")
    def runs() -> None:
        run()

    image = {"packages": [make_wheel(tmp_path, "1.0"), "other"], "command": ["python3", "-c", "import other, tinypkg"]}
    record = execute(runs, configuration=Configuration(image={"image": image}))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert lines(record) == [f"run: installing from {indexes[0].host}: other 1.1"]


def test_two_calls_long_reports_and_a_closed_terminal(tmp_path: Path) -> None:
    """Neither a report that the pipe cannot hold, nor a listener that fails, stops the program that writes it."""
    found = list[str]()

    def closed(text: str) -> None:
        found.append(text)
        raise BrokenPipeError

    entry = {"download_info": {"url": "https://host/x"}, "is_direct": False}
    reports = [
        [entry | {"metadata": {"name": name, "version": "1", "description": "}" * 300_000}} for name in names]
        for names in (("a", "b"), (), ("c",))
    ]
    (tmp_path / "reports.json").write_text(json.dumps(reports))
    program = """
import json, os, sys
for each in json.load(open(sys.argv[1])):
    with open(os.environ["PIP_REPORT"], "w") as file:
        json.dump({"install": each}, file)
"""
    with listed(closed) as variables:
        words = [sys.executable, "-c", program, str(tmp_path / "reports.json")]
        code = Processes(grace_seconds=1).run(words, cwd=tmp_path, env=os.environ | variables, log=tmp_path / "log.txt")
    assert code == 0
    assert found == ["installing from host: a 1, b 1", "installing from host: c 1"]
    assert not Path(variables["PIP_REPORT"]).exists()


def test_a_report_that_is_read_together_with_the_end_is_listed() -> None:
    entry = {"download_info": {"url": "https://host/x"}, "is_direct": False, "metadata": {"name": "a", "version": "1"}}
    found, (end, writer) = list[str](), os.pipe()
    os.write(writer, json.dumps({"install": [entry]}).encode() + index_report._END.encode())
    index_report._read(end, found.append)
    assert found == ["installing from host: a 1"]
    os.close(end)
    os.close(writer)


def test_a_pip_that_lists_nothing_is_reported(tmp_path: Path) -> None:
    found = list[str]()
    with listed(found.append):
        pass
    assert len(found) == 1
    assert "older than 22.2" in found[0]
    with pytest.raises(KeyError), listed(found.append):
        raise KeyError
    assert len(found) == 1
