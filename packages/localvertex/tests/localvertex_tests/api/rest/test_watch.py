"""Lists whose folders are watched: no change by anybody is missed, nothing stays watched, and little is looked at."""

import gc
import mmap
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from random import Random

import pytest
from localvertex_tests.api.rest.test_index import Lists, fill, in_place, only_sound
from localvertex_tests.support.run_records import write, write_job

from localvertex._base import linux
from localvertex.api.rest.index import UNKNOWN, signature
from localvertex.api.rest.watch import NEVER, Watch
from localvertex.commands.service import Service

pytestmark = pytest.mark.skipif(not linux.is_used(), reason="only Linux reports changes of folders")


@pytest.fixture
def lists(tmp_path: Path) -> Lists:
    """Return lists whose folders are watched."""
    return watched(fill(tmp_path / "runs"))


def watched(work_dir: Path) -> Lists:
    found = Lists(work_dir)
    found.check()
    found.check()
    return found


def num_watches(lists: Lists) -> int:
    """Return how many folders the kernel watches for the index."""
    kernel = lists._with.pipeline_jobs._store.index._watch._kernel
    return Path(f"/proc/self/fdinfo/{kernel._fd}").read_text().count("inotify wd:") if kernel else 0


def num_looks(work: Callable[[], object]) -> int:
    """Return how often files are looked at meanwhile."""
    found = []

    def note(_: object, event: str, argument: object) -> None:
        if event == "c_call" and getattr(argument, "__name__", "") in ("stat", "lstat", "open", "scandir", "listdir"):
            found.append(argument)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    return len(found)


def _mapped(path: Path) -> None:
    with path.open("r+b") as file, mmap.mmap(file.fileno(), 0) as content:
        at = content.find(b"SUCCEEDED")
        content[at : at + 9] = b"CANCELLED"


def _many_changes(folder: Path) -> None:
    """Make more changes than the kernel keeps, and then one that counts."""
    for number in range(int(Path("/proc/sys/fs/inotify/max_queued_events").read_text()) + 10):
        os.utime(folder / f"run-{number % 2:05}")
    in_place(folder / "run-00000" / "run.json", "SUCCEEDED", "CANCELLED")


def _replaced(folder: Path) -> None:
    """Put another folder with its content in the place of a folder."""
    aside = folder.with_name(f"{folder.name}-before")
    folder.rename(aside)
    shutil.copytree(aside, folder, copy_function=shutil.copy2)


def _later(folder: Path) -> None:
    shutil.move(folder / "run-00005" / "run.json", folder / "kept")


CHANGES: dict[str, Callable[[Path], object]] = {
    "an edit in place": lambda at: in_place(at / "run-00000" / "run.json", "SUCCEEDED", "CANCELLED"),
    "an edit of the job": lambda at: in_place(at / "api/pipelineJobs/run-00001.json", '"name 1"', '"name x"'),
    "an edit through memory": lambda at: _mapped(at / "run-00000" / "run.json"),
    "another process": lambda at: subprocess.run(
        ["sed", "-i", "s/SUCCEEDED/CANCELLED/", at / "run-00000" / "run.json"], check=True
    ),
    "cut": lambda at: os.truncate(at / "run-00000" / "run.json", 5),
    "removed": lambda at: (at / "run-00000" / "run.json").unlink(),
    "a folder removed": lambda at: shutil.rmtree(at / "run-00000"),
    "a job removed": lambda at: (at / "api/pipelineJobs/run-00000.json").unlink(),
    "all jobs removed": lambda at: shutil.rmtree(at / "api"),
    "a new run": lambda at: write_job(at, 300),
    "a folder renamed": lambda at: (at / "run-00000").rename(at / "aside"),
    "renamed and another in its place": lambda at: (
        (at / "run-00000").rename(at / "aside"),
        (at / "run-00001").rename(at / "run-00000"),
    ),
    "renamed over": lambda at: (at / "run-00003" / "run.json").replace(at / "run-00000" / "run.json"),
    "a link to another run": lambda at: (
        (at / "run-00000").rename(at / "aside"),
        (at / "run-00000").symlink_to(at / "run-00001"),
    ),
    "replaced by a file": lambda at: (shutil.rmtree(at / "run-00000"), (at / "run-00000").write_text("")),
    "the folder of the jobs replaced": lambda at: _replaced(at / "api" / "pipelineJobs"),
    "the folder api replaced": lambda at: _replaced(at / "api"),
    "the work folder replaced": _replaced,
    "its parent replaced": lambda at: _replaced(at.parent),
    "a note": lambda at: write(at / "run-00000" / "note.json", '{"name": "mine", "note": ""}'),
    "too many changes": _many_changes,
}


@pytest.mark.parametrize("change", CHANGES)
def test_no_change_is_missed_nor_one_after_it(lists: Lists, change: str) -> None:
    work_dir = lists.work_dir
    before = lists.pages(), lists.runs()
    CHANGES[change](work_dir)
    lists.check()
    assert ((lists.pages(), lists.runs()) == before) is (change.endswith(" replaced"))
    # What has the names now is watched as well.
    for path in sorted(work_dir.glob("*/run.json")):
        in_place(path, '"small"', '"large"') if '"small"' in path.read_text() else None
    write_job(work_dir, 301)
    lists.check()
    assert "run-00301" in dict(lists.runs())
    lists.check(filter="state=PIPELINE_STATE_CANCELLED", orderBy="display_name, create_time desc")


def test_a_run_is_found_when_its_folder_gets_a_record(lists: Lists) -> None:
    (lists.work_dir / "by-hand" / "below").mkdir(parents=True)
    lists.check()
    lists.check()
    assert "by-hand" not in dict(lists.runs())
    shutil.copy(lists.work_dir / "run-00000" / "run.json", lists.work_dir / "by-hand")
    assert "by-hand" in dict(lists.runs())
    lists.check()


def test_a_folder_that_is_removed_while_a_process_is_in_it_does_not_hide_the_next_of_its_name(lists: Lists) -> None:
    run_dir = lists.work_dir / "run-00000"
    with subprocess.Popen(["sleep", "60"], cwd=run_dir) as inside:
        shutil.copytree(run_dir, lists.work_dir.parent / "copy", copy_function=shutil.copy2)
        shutil.rmtree(run_dir)
        lists.check()
        shutil.copytree(lists.work_dir.parent / "copy", run_dir, copy_function=shutil.copy2)
        lists.check()
        in_place(run_dir / "run.json", "SUCCEEDED", "CANCELLED")
        lists.check()
        inside.terminate()


@pytest.mark.parametrize("kind", ["a hard link", "a link", "a linked folder"])
def test_what_is_changed_by_another_name_is_not_missed(tmp_path: Path, kind: str) -> None:
    work_dir, other = only_sound(fill(tmp_path / "runs")), tmp_path / "other"
    run_dir = work_dir / "run-00000"
    if kind == "a linked folder":
        run_dir.rename(other)
        run_dir.symlink_to(other)
        path = other / "run.json"
    elif kind == "a hard link":
        os.link(run_dir / "run.json", other)
        path = other
    else:
        (run_dir / "run.json").rename(other)
        (run_dir / "run.json").symlink_to(other)
        path = other
    lists = watched(work_dir)
    before = lists.pages()
    in_place(path, "SUCCEEDED", "CANCELLED")
    lists.check()
    assert lists.pages() != before


def test_a_change_by_a_name_that_was_made_since_is_found_within_a_minute(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lists = watched(only_sound(fill(tmp_path / "runs")))
    os.link(lists.work_dir / "run-00000" / "run.json", tmp_path / "other")
    in_place(tmp_path / "other", "SUCCEEDED", "CANCELLED")
    monkeypatch.setattr("time.monotonic", lambda: time.perf_counter() + 10**9)
    lists.check()
    in_place(tmp_path / "other", "CANCELLED", "SUCCEEDED")
    lists.check()


def test_a_record_whose_link_leads_nowhere_is_not_taken_for_missing(tmp_path: Path) -> None:
    (tmp_path / "run.json").symlink_to(tmp_path / "nowhere")
    assert signature(str(tmp_path / "run.json")) == UNKNOWN


@pytest.mark.parametrize("seed", range(3))
def test_lists_are_right_after_any_changes(tmp_path: Path, seed: int) -> None:
    lists, random = watched(fill(tmp_path / "runs")), Random(seed)
    work_dir = lists.work_dir
    for _ in range(10):
        for _ in range(random.randrange(1, 4)):
            names = sorted(each.name for each in work_dir.glob("run-*"))
            one, other = random.choice(names), f"run-{random.randrange(40):05}"
            run_dir, job = work_dir / one, work_dir / "api" / "pipelineJobs" / f"{one}.json"
            match random.randrange(7):
                case 0:
                    write_job(work_dir, random.randrange(40), state=random.choice(["SUCCEEDED", "FAILED", "RUNNING"]))
                case 1:
                    shutil.rmtree(run_dir)
                case 2:
                    run_dir.rename(work_dir / other) if not (work_dir / other).exists() else None
                case 3:
                    job.unlink(missing_ok=True)
                case 4:
                    shutil.copytree(run_dir, work_dir / other, dirs_exist_ok=True, copy_function=shutil.copy2)
                case 5:
                    (run_dir / "run.json").unlink(missing_ok=True)
                case 6 if (run_dir / "run.json").exists():
                    text = (run_dir / "run.json").read_text()
                    (run_dir / "run.json").write_text(text.replace("FAILED", "CANCELLED"))
        lists.check()
        lists.check(filter="state!=PIPELINE_STATE_FAILED", orderBy="display_name", pageSize="5")


def test_nothing_stays_watched(tmp_path: Path) -> None:
    work_dir = only_sound(fill(tmp_path / "runs"))
    lists = watched(work_dir)
    # The work folder, those of three collections, and those in the work folder, of which one is `api`.
    num_at_first = num_watches(lists)
    assert num_at_first == 4 + len([each for each in work_dir.iterdir() if each.is_dir()])
    for number in range(300, 310):
        write_job(work_dir, number)
        lists.check()
        shutil.rmtree(work_dir / f"run-{number:05}")
        (work_dir / "api" / "pipelineJobs" / f"run-{number:05}.json").unlink()
    (work_dir / "run-00000").rename(tmp_path / "elsewhere")
    lists.check()
    assert num_watches(lists) == num_at_first - 1
    for _ in range(5):
        _replaced(work_dir)
        shutil.rmtree(tmp_path / "runs-before")
        lists.check()
    assert num_watches(lists) == num_at_first - 1
    num_open = num_descriptors()
    lists._with.pipeline_jobs._store.close()
    assert num_descriptors() == num_open - 1
    lists.check()
    assert num_watches(lists) == 0
    assert num_descriptors() == num_open - 1


def num_descriptors() -> int:
    """Return how many descriptors of inotify this process has open."""
    gc.collect()
    links = [each for each in Path("/proc/self/fd").iterdir() if each.is_symlink()]
    return len([each for each in links if os.readlink(each) == "anon_inode:inotify"])


def test_a_list_looks_only_at_its_page_and_at_what_has_changed(tmp_path: Path) -> None:
    def looks(num_more: int) -> tuple[int, int, int]:
        work_dir = only_sound(fill(tmp_path / f"runs-{num_more}"))
        for number in range(100, 100 + num_more):
            write_job(work_dir, number)
        lists = watched(work_dir)
        page, runs = num_looks(lambda: lists.page(pageSize="5")), num_looks(lists.runs)
        in_place(work_dir / "run-00000" / "run.json", "SUCCEEDED", "CANCELLED")
        return page, runs, num_looks(lambda: lists.page(pageSize="5"))

    assert looks(10) == looks(110)
    page, runs, after_change = looks(10)
    assert runs < 10
    assert page < after_change < page + 20


def test_all_files_are_looked_at_from_time_to_time(lists: Lists, monkeypatch: pytest.MonkeyPatch) -> None:
    num_watched = num_looks(lists.runs)
    monkeypatch.setattr("time.monotonic", lambda: time.perf_counter() + 10**9)
    assert num_looks(lists.runs) > num_watched + 24
    assert num_looks(lists.runs) == num_watched


@pytest.mark.parametrize("missing", ["Linux", "a folder for each run", "a watch", "the kernel's view"])
def test_lists_are_right_where_folders_cannot_be_watched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, missing: str
) -> None:
    if missing == "Linux":
        monkeypatch.setenv("LOCALVERTEX_PORTABLE", "1")
    elif missing == "a folder for each run":
        monkeypatch.setattr("localvertex.api.rest.watch.max_watches", lambda: 40)
    elif missing == "a watch":
        monkeypatch.setattr("localvertex._base.linux.Inotify.add", lambda *_: -1)
    else:
        monkeypatch.setattr("localvertex._base.linux._LOCAL_FILE_SYSTEMS", ())
    lists = watched(fill(tmp_path / "runs"))
    # Those of the second collection are watched in spite of the limit, which would else be used up by runs.
    assert num_watches(lists) == (12 if missing.startswith("a folder") else 0)
    for name in ("run-00000", "run-00003", "run-00005", "run-00020"):
        path = lists.work_dir / name / "run.json"
        path.write_text(re.sub('"pipeline_name": "small"', '"pipeline_name": "large"', path.read_text()))
        lists.check()
    shutil.rmtree(lists.work_dir / "run-00010")
    write_job(lists.work_dir, 300)
    lists.check()


def test_where_the_kernel_does_not_see_all_changes_nothing_is_watched() -> None:
    assert linux.reports_all_changes("/tmp") or linux.reports_all_changes("/")
    # A file system whose content changes without a call.
    assert not linux.reports_all_changes("/proc")
    watch = Watch()
    assert watch.changes(["/proc"], NEVER) == (NEVER, None)
    assert watch.changes(["/nowhere"], NEVER) == (NEVER, None)


def test_a_folder_in_two_places_is_looked_at_each_time(tmp_path: Path) -> None:
    (tmp_path / "list" / "one").mkdir(parents=True)
    watch = Watch()
    moment, _ = watch.changes([str(tmp_path / "list")], NEVER)
    assert watch.add(str(tmp_path / "list" / "one"))
    # As a bind mount would have it.
    assert not watch.add(f"{tmp_path}/list/../list/one")
    (tmp_path / "list" / "one" / "file").touch()
    assert watch.changes([str(tmp_path / "list")], moment)[1] == [f"{tmp_path}/list/one"]


def test_an_index_that_is_forgotten_leaves_no_descriptor(tmp_path: Path) -> None:
    work_dir, before = fill(tmp_path / "runs"), num_descriptors()
    found: Lists | None = watched(work_dir)
    assert num_descriptors() == before + 1
    del found
    assert num_descriptors() == before


def test_the_first_list_watches_nothing(tmp_path: Path) -> None:
    lists = Lists(fill(tmp_path / "runs"))
    lists.page()
    assert num_watches(lists) == 0
    lists.page()
    assert num_watches(lists) > 24


def test_a_record_that_changes_while_a_list_is_made_is_right_in_the_next(lists: Lists) -> None:
    """In each of many turns, at another moment of the list."""
    path = lists.work_dir / "run-00000" / "run.json"
    code = f"""
import pathlib, time
path = pathlib.Path({str(path)!r})
text = path.read_text()
for number in range(300):
    path.write_text(text.replace('"seconds": 1.5', f'"seconds": {{number}}.5'))
    time.sleep(0.001)
"""
    with subprocess.Popen([sys.executable, "-c", code]) as writer:
        while writer.poll() is None:
            lists.runs()
            time.sleep(0.0005)
    assert '"seconds": 299.5' in path.read_text()
    lists.check()


def test_the_service_watches_with_its_own_descriptor(tmp_path: Path) -> None:
    service = Service(fill(tmp_path / "runs"), time_factor=1, log=lambda _: None)
    watch = service.pipeline_jobs._store.index._watch
    watch.changes([str(tmp_path / "runs")], NEVER)
    assert watch._kernel
    assert not os.get_inheritable(watch._kernel._fd)
    service.pipeline_jobs._store.close()
    assert not watch._kernel
