"""Steps that install packages get an environment of their own; the user's is never changed."""

import importlib.util
import zipfile
from pathlib import Path

import pytest
from kfp import dsl


def make_wheel(folder: Path, version: str) -> str:
    """A wheel `tinypkg` with one module and one program, and no need for a network."""
    path = folder / f"tinypkg-{version}-py3-none-any.whl"
    info = f"tinypkg-{version}.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        wheel.writestr("tinypkg.py", f"VERSION = {version!r}\ndef main():\n    print('tiny', VERSION)\n")
        wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\nName: tinypkg\nVersion: {version}\n")
        wheel.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\ntiny-program = tinypkg:main\n")
        wheel.writestr(f"{info}/RECORD", "")
    return str(path)


@pytest.fixture(autouse=True)
def offline(monkeypatch):
    """pip may look at no index."""
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_DISABLE_PIP_VERSION_CHECK", "1")


def installing(wheel: str, **options):
    """A pipeline of one step that installs the wheel and uses its module and its program."""

    @dsl.component(base_image="python:3.11", packages_to_install=[wheel], **options)
    def use() -> str:
        import subprocess

        import kfp
        import tinypkg

        program = subprocess.run(["tiny-program"], capture_output=True, text=True, check=True)
        return f"{tinypkg.VERSION} {program.stdout.strip()} {kfp.__name__}"

    @dsl.pipeline(name="installs")
    def installs():
        use()

    return installs


def test_a_step_finds_what_it_installs_and_ours_stays_as_it_was(execute, task, log_text, work_dir, tmp_path):
    one, two = (installing(make_wheel(tmp_path, version)) for version in ("1.0", "2.0"))
    records = [execute(pipeline, use_cache=False) for pipeline in (one, two, one)]
    results = [task(record, "use")["outputs"]["parameters"]["Output"] for record in records]
    assert results == ["1.0 tiny 1.0 kfp", "2.0 tiny 2.0 kfp", "1.0 tiny 1.0 kfp"]
    assert importlib.util.find_spec("tinypkg") is None
    environments = work_dir / ".localvertex" / "environments"
    complete = list(environments.glob("*/complete.json"))
    assert len(complete) == 2


def test_a_half_built_environment_is_built_again(execute, task, work_dir, tmp_path):
    pipeline = installing(make_wheel(tmp_path, "1.0"), install_kfp_package=False)
    execute(pipeline, use_cache=False)
    (marker,) = (work_dir / ".localvertex" / "environments").glob("*/complete.json")
    (packages,) = marker.parent.glob("lib/*/site-packages")
    (packages / "tinypkg.py").unlink()
    marker.unlink()
    assert execute(pipeline, use_cache=False)["state"] == "SUCCEEDED"


def test_a_failed_installation_is_the_steps_failure_and_leaves_no_environment(execute, work_dir, tmp_path):
    record = execute(installing(str(tmp_path / "absent-1.0-py3-none-any.whl")))
    assert record["state"] == "FAILED"
    assert "installing the packages failed" in record["error"]
    assert not list((work_dir / ".localvertex" / "environments").glob("*/complete.json"))


def test_two_steps_that_need_the_same_environment_at_the_same_time_share_it(execute, work_dir, tmp_path):
    wheel = make_wheel(tmp_path, "1.0")

    @dsl.component(base_image="python:3.11", packages_to_install=[wheel], install_kfp_package=False)
    def use(n: int) -> str:
        import tinypkg

        return tinypkg.VERSION

    @dsl.pipeline(name="shares")
    def shares():
        for n in range(3):
            use(n=n)

    record = execute(shares, max_parallel=3)
    assert [each["outputs"]["parameters"] for each in record["tasks"]] == [{"Output": "1.0"}] * 3
    assert len(list((work_dir / ".localvertex" / "environments").glob("*/complete.json"))) == 1


def test_a_step_that_asks_for_an_environment_of_its_own_gets_the_same(execute, tmp_path):
    record = execute(installing(make_wheel(tmp_path, "1.0"), use_venv=True))
    assert record["state"] == "SUCCEEDED", record["error"]
    assert importlib.util.find_spec("tinypkg") is None
