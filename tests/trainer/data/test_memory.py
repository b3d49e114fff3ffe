"""How much memory this process may use, with and without the limit of a container."""

import types
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from localvertex._base import linux
from trainer.data.examples import available_bytes

MIB = 2**20
Machine = Callable[[dict[str, str]], int]


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine with 1 GiB available; the argument is the content of its control group's files."""
    monkeypatch.setattr(psutil, "virtual_memory", lambda: types.SimpleNamespace(available=1024 * MIB))
    monkeypatch.setattr(linux, "_CGROUP", str(tmp_path))

    def available(files: dict[str, str]) -> int:
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return available_bytes()

    return available


def test_without_a_limit_it_is_what_the_machine_has(machine: Machine) -> None:
    assert machine({}) == 1024 * MIB
    assert machine({"memory.max": "max\n", "memory.current": "5\n"}) == 1024 * MIB


def test_a_containers_limit_counts_and_cached_files_are_reclaimed(machine: Machine) -> None:
    stat = f"anon 1\ninactive_file {50 * MIB}\n"
    files = {"memory.max": f"{500 * MIB}", "memory.current": f"{400 * MIB}", "memory.stat": stat}
    assert machine(files) == 150 * MIB
    assert machine(files | {"memory.current": f"{600 * MIB}"}) == 0


def test_only_linux_has_limits_of_containers(machine: Machine, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOCALVERTEX_PORTABLE", "1")
    assert machine({"memory.max": f"{500 * MIB}", "memory.current": f"{400 * MIB}"}) == 1024 * MIB


def test_version_1_of_the_control_groups(machine: Machine) -> None:
    files = {
        "memory/memory.limit_in_bytes": f"{300 * MIB}",
        "memory/memory.usage_in_bytes": f"{100 * MIB}",
        "memory/memory.stat": f"total_inactive_file {10 * MIB}",
    }
    assert machine(files) == 210 * MIB


@pytest.mark.parametrize("text", ["inactive_file", "inactive_file many", "a b c"])
def test_damaged_statistics_of_a_container_are_ignored(machine: Machine, text: str) -> None:
    assert machine({"memory.max": f"{500 * MIB}", "memory.current": f"{400 * MIB}", "memory.stat": text}) == 100 * MIB


def test_a_machine_that_hides_its_memory_is_not_the_users_mistake(monkeypatch: pytest.MonkeyPatch) -> None:
    def hidden() -> None:
        raise FileNotFoundError(2, "No such file or directory", "/proc/meminfo")

    monkeypatch.setattr(psutil, "virtual_memory", hidden)
    assert available_bytes() == 0


def test_this_machine_reports_its_memory() -> None:
    assert 0 < available_bytes() <= psutil.virtual_memory().total
