import pytest

from trainer.data.memory import available_bytes

MIB = 2**20


@pytest.fixture
def machine(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal:  9000000 kB\nMemAvailable:  1048576 kB\n")

    def with_container(**files):
        for name, text in files.items():
            path = tmp_path / name.replace("__", "/").replace("--", ".")
            path.parent.mkdir(exist_ok=True)
            path.write_text(text)
        return available_bytes(tmp_path, tmp_path)

    return with_container


def test_without_a_container_it_is_what_the_machine_has(machine):
    assert machine() == 1024 * MIB
    assert machine(**{"memory--max": "max\n", "memory--current": "5\n"}) == 1024 * MIB


def test_a_containers_limit_counts_and_cached_files_are_given_back(machine):
    files = {"memory--max": f"{500 * MIB}", "memory--current": f"{400 * MIB}", "memory--stat": f"anon 1\ninactive_file {50 * MIB}\n"}  # noqa: E501  # fmt: skip
    assert machine(**files) == 150 * MIB
    assert machine(**files | {"memory--current": f"{600 * MIB}"}) == 0


def test_the_older_control_groups(machine):
    files = {"memory__memory--limit_in_bytes": f"{300 * MIB}", "memory__memory--usage_in_bytes": f"{100 * MIB}", "memory__memory--stat": f"total_inactive_file {10 * MIB}"}  # noqa: E501  # fmt: skip
    assert machine(**files) == 210 * MIB


def test_this_machine_has_some():
    assert available_bytes() > 0
