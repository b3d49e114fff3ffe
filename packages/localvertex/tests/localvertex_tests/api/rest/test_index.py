"""The index of lists: it never changes a list, whatever happens to the records, and saves reading them."""

import fcntl
import hashlib
import json
import os
import shutil
import sqlite3
import stat
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings, strategies as st
from localvertex_tests.support.run_records import job_record, run_record, write, write_job

from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.index import Index, Known, Records, ResourceCache
from localvertex.api.rest.index_file import FILE, FORMAT
from localvertex.commands.service import Service
from localvertex.console.runs.outputs import RunOutputs
from localvertex.store import journal
from vertex_testing.server import PARENT

STATES = ("SUCCEEDED", "FAILED", "CANCELLED", "RUNNING", "PENDING")

NUM_JOBS = 24

_opened: list[str] | None = None


def _note(event: str, arguments: tuple[Any, ...]) -> None:
    if event == "open" and _opened is not None and isinstance(arguments[0], str | os.PathLike):
        _opened.append(os.fspath(arguments[0]))


sys.addaudithook(_note)


@contextmanager
def files_opened() -> Iterator[list[str]]:
    """Collect the records that are opened meanwhile, without locks."""
    global _opened
    _opened, found = [], []
    try:
        yield found
    finally:
        found += sorted(each for each in _opened if each.endswith((".json", ".jsonl")))
        _opened = None


class NoCache(ResourceCache):
    """Keeps nothing."""

    def keep(self, *_: object) -> None:
        """Forget it."""


class NoIndex(Index):
    """Reads all records for each list."""

    def __init__(self) -> None:
        self.pages = NoCache()

    @contextmanager
    def _now(self, records: Records) -> Iterator[Known]:
        """Read each record."""
        yield Known(entries={each: ("", records.summary(each)) for each in records.signatures(records.ids())})


class Lists:
    """The lists of a work folder with the index and without it."""

    def __init__(self, work_dir: Path) -> None:
        self.work_dir = work_dir
        self._with = Service(work_dir, time_factor=1, log=lambda _: None)
        self._without = Service(work_dir, time_factor=1, log=lambda _: None)
        for each in (self._with, self._without):
            # Contexts that are not yet written have the present time.
            each.metadata.runs.contexts = lambda _: {}
        self._without.pipeline_jobs._store.index = NoIndex()  # type: ignore[assignment]

    def page(self, *, indexed: bool = True, collection: str = "pipelineJobs", **query: str) -> dict[str, Any]:
        """Return one page."""
        service = self._with if indexed else self._without
        _, project, _, region = PARENT.split("/")
        call = Call(location=Location(project=project, region=region), query=query)
        return service.collections[collection]["list"][2](call)

    def pages(self, **query: Any) -> list[dict[str, Any]]:
        """Return all pages of a list."""
        found = [self.page(**query)]
        while token := found[-1].get("nextPageToken"):
            found.append(self.page(**query, pageToken=token))
        return found

    def check(self, **query: str) -> None:
        """Compare the lists, of pipeline jobs with a query, and all runs with those without the index."""
        assert self.pages(**query) == self.pages(indexed=False, **query)
        for each in ("customJobs", "schedules"):
            assert self.pages(collection=each) == self.pages(collection=each, indexed=False)
        assert self.runs() == self.runs(indexed=False)

    def runs(self, *, indexed: bool = True) -> list[tuple[str, Any]]:
        """Return all runs of the work folder, including those of no job."""
        store = (self._with if indexed else self._without).pipeline_jobs._store
        found = store.index.summaries(RunOutputs(store))
        return sorted((name, each.content) for name, each in found)

    def num_active(self, schedule: str) -> int:
        """Count the runs of a schedule that have not ended."""
        return self._with.pipeline_jobs.num_active(schedule)


def fill(work_dir: Path) -> Path:
    """Write jobs in all states, of which some are damaged."""
    for number in range(NUM_JOBS):
        labels = {"team": "ab"[number % 2], "n": str(number % 3)}
        write_job(work_dir, number, state=STATES[number % 5], labels=labels, displayName=f"name {number % 4}")
    api = work_dir / "api"
    write_job(work_dir, 70)
    write(work_dir / "run-00070" / "run.json", '{"run_id": 3}')
    write(api / "pipelineJobs" / "cut.json", '{"name": "')
    # Its run was removed by `localvertex clean`.
    write(api / "pipelineJobs" / "gone.json", job_record("gone", "2026-02-01T00:00:00.000Z"))
    for number, state in enumerate(("JOB_STATE_SUCCEEDED", "JOB_STATE_FAILED", "JOB_STATE_RUNNING")):
        job = {"name": f"{PARENT}/customJobs/{number}", "displayName": "job", "state": state, "jobSpec": {"a": 1}}
        times = {"createTime": f"2026-01-0{number + 1}T00:00:00Z", "updateTime": "2026-01-09T00:00:00Z"}
        write(api / "customJobs" / f"{number}.json", job | times)
    write(api / "schedules" / "1.json", "[]")
    return work_dir


@pytest.fixture
def lists(tmp_path: Path) -> Lists:
    return Lists(fill(tmp_path / "runs"))


@pytest.fixture(scope="module")
def unchanged(tmp_path_factory: pytest.TempPathFactory) -> Lists:
    return Lists(fill(tmp_path_factory.mktemp("records") / "runs"))


FIELDS = ["display_name", "state", "labels.team", "labels", "createTime", "endTime", "error.code", "pipelineName"]
LARGE = ["pipelineSpec.pipelineInfo.name", "runtime_config.parameterValues.n", "jobDetail", "pipelineSpec"]
VALUES = [
    "*",
    '"name 1"',
    '"name*"',
    "PIPELINE_STATE_FAILED",
    "a",
    '""',
    "9",
    "small",
    '"2026-01-01T00:05:00Z"',
    "team",
]

terms = st.builds(
    lambda negation, field, operator, value: f"{negation}{field}{operator}{value}",
    st.sampled_from(["", "", "NOT ", "-"]),
    st.sampled_from([*FIELDS, *FIELDS, *LARGE]),
    st.sampled_from(["=", "!=", ":", "<", ">="]),
    st.sampled_from(VALUES),
)
some_filters = st.lists(terms, max_size=3).flatmap(
    lambda each: st.sampled_from([" AND ", " OR ", " "]).map(lambda word: word.join(each))
)
orders = st.lists(
    st.builds(
        "{} {}".format,
        st.sampled_from(["display_name", "state", "create_time", "end_time", "labels", "error", "pipeline_spec"]),
        st.sampled_from(["", "asc", "desc"]),
    ),
    max_size=2,
).map(", ".join)


@given(text=some_filters, order=orders, size=st.integers(6, 40))
@settings(max_examples=60, deadline=None)
def test_a_list_with_the_index_is_the_list_without(unchanged: Lists, text: str, order: str, size: int) -> None:
    query = {"filter": text, "orderBy": order, "pageSize": str(size)}
    pages = unchanged.pages(**query)
    assert pages == unchanged.pages(indexed=False, **query)
    names = [each["name"] for page in pages for each in page["pipelineJobs"]]
    assert len(set(names)) == len(names)


def test_a_page_reads_only_its_own_records(lists: Lists) -> None:
    folder = lists.work_dir
    # Damaged ones are read each time, and so are those that have just changed.
    for path in ("pipelineJobs/cut", "pipelineJobs/run-00070", "customJobs/2", "schedules/1"):
        (folder / "api" / f"{path}.json").unlink()
    shutil.rmtree(folder / "run-00070")
    lists.runs(), lists.page(), lists.page(collection="customJobs")
    for query in ({}, {"filter": 'state!="x" AND labels:team'}, {"orderBy": "display_name, end_time desc"}):
        with files_opened() as opened:
            jobs = lists.page(pageSize="5", **query)["pipelineJobs"]
        ids = [each["name"].rpartition("/")[2] for each in jobs]
        assert len(ids) == 5
        paths = [[folder / "api" / "pipelineJobs" / f"{each}.json", folder / each / "run.json"] for each in ids]
        assert {*opened} <= {str(path) for pair in paths for path in pair}
        with files_opened() as opened:
            assert lists.page(pageSize="5", **query)["pipelineJobs"] == jobs
        # The resources of the last pages that have ended are kept as long as their files are the same.
        ended = {each["name"].rpartition("/")[2] for each in jobs if "endTime" in each}
        assert ended
        assert not [each for each in opened if any(each_id in each for each_id in ended)]
    with files_opened() as opened:
        lists.runs()
        lists.num_active(f"{PARENT}/schedules/1")
    assert opened == []
    with files_opened() as opened:
        # A field that is not in the index.
        assert len(lists.page(filter="pipelineSpec.pipelineInfo.name=small")["pipelineJobs"]) == NUM_JOBS
    assert len(opened) > 3 * NUM_JOBS


def in_place(path: Path, old: str, new: str) -> None:
    """Change a file as an editor may: the same file with the same size and time."""
    status, text = path.stat(), path.read_text()
    assert old in text
    path.write_text(text.replace(old, new))
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert path.stat().st_size == status.st_size


def continue_journal(run_dir: Path) -> Callable[[], object]:
    """Write the snapshot of a killed run with a journal; return what appends a change to it."""
    changes = journal.Journal(run_dir, 1)
    content = run_record(run_dir.parent, run_dir.name, "2026-01-01T00:00:00.000Z", state="RUNNING")
    write(run_dir / "run.json", content | {"journal": changes.position.as_json()})
    end = {"state": "SUCCEEDED", "end_time": "2026-01-01T00:09:00.000Z", "seconds": 9.0}
    return lambda: changes.append([{"time": "2026-01-01T00:09:00.000Z", "run": end}])


def test_what_changes_in_the_records_is_in_the_next_list(lists: Lists) -> None:
    work_dir, jobs = lists.work_dir, lists.work_dir / "api" / "pipelineJobs"
    append = continue_journal(work_dir / "run-00009")
    lists.check()
    lock = (work_dir / "run-00003" / ".lock").open("w")
    changes: list[Callable[[], object]] = [
        lambda: in_place(work_dir / "run-00000" / "run.json", "SUCCEEDED", "CANCELLED"),
        lambda: in_place(jobs / "run-00001.json", '"name 1"', '"name x"'),
        lambda: (work_dir / "run-00002" / "run.json").write_text("{}"),
        lambda: (jobs / "run-00004.json").write_bytes(b"\xff"),
        lambda: (jobs / "run-00005.json").unlink(),
        lambda: shutil.rmtree(work_dir / "run-00006"),
        lambda: (work_dir / "run-00007").rename(work_dir / "aside"),
        lambda: (work_dir / "aside").rename(work_dir / "run-00007"),
        lambda: write_job(work_dir, 300),
        lambda: write(jobs / "cut.json", job_record("cut", "2026-03-01T00:00:00.000Z")),
        append,
        # The run was killed, and another process resumes it.
        lambda: fcntl.flock(lock, fcntl.LOCK_EX),
        lock.close,
        lambda: in_place(work_dir / "api" / "customJobs" / "0.json", "SUCCEEDED", "CANCELLED"),
        lambda: shutil.rmtree(work_dir / "api"),
        lambda: shutil.rmtree(work_dir / "run-00008"),
    ]
    for change in changes:
        before = lists.pages(), lists.pages(collection="customJobs"), lists.runs()
        change()
        lists.check()
        assert (lists.pages(), lists.pages(collection="customJobs"), lists.runs()) != before
        lists.check(filter='state="PIPELINE_STATE_CANCELLED" OR display_name:x', orderBy="display_name")


def test_a_state_that_is_not_yet_on_the_disk_is_listed(lists: Lists, monkeypatch: pytest.MonkeyPatch) -> None:
    lists.check()
    store = lists._with.pipeline_jobs._store
    job = store.read("pipelineJobs", "run-00000")
    assert job
    with monkeypatch.context() as patch:
        patch.setattr(
            "localvertex._base.userinput.atomic_write._write",
            lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")),
        )
        store.keep("pipelineJobs", "run-00000", job | {"displayName": "kept"})
        assert [each["displayName"] for each in lists.page(filter="display_name=kept")["pipelineJobs"]] == ["kept"]
    store.close()
    lists.check(filter="display_name=kept")


def test_a_record_that_has_just_changed_is_read_again(lists: Lists) -> None:
    # On most file systems a change within the same few milliseconds leaves the same times.
    path = lists.work_dir / "run-00000" / "run.json"
    write(path, path.read_text(), age_seconds=0)
    for _ in range(2):
        lists.page()
        with files_opened() as opened:
            lists.page(filter="display_name=none")
        assert str(path) in opened
    write(path, path.read_text())
    lists.page()
    with files_opened() as opened:
        lists.page(filter="display_name=none")
    assert str(path) not in opened


@pytest.mark.parametrize("order", ["", "display_name", "state desc, display_name"])
def test_no_run_is_lost_or_twice_while_runs_arrive_and_go_between_pages(lists: Lists, order: str) -> None:
    first = {each["name"] for page in lists.pages(indexed=False) for each in page["pipelineJobs"]}
    seen, token, removed = list[str](), "", set[str]()
    for number in range(len(first)):
        page = lists.page(pageSize="2", orderBy=order, pageToken=token)
        seen += [each["name"] for each in page["pipelineJobs"]]
        token = page.get("nextPageToken", "")
        if not token:
            break
        write_job(lists.work_dir, 400 + number, displayName=f"name {number % 4}", state=STATES[number % 5])
        # The last one of the page, after which the next page begins, and one of another page.
        for name in (seen[-1], sorted(first)[number]):
            (lists.work_dir / "api" / "pipelineJobs" / f"{name.rpartition('/')[2]}.json").unlink(missing_ok=True)
            removed.add(name)
    assert not token
    assert len(set(seen)) == len(seen)
    assert first - removed <= set(seen)


def test_the_index_contains_no_large_fields(lists: Lists) -> None:
    secret = "a word that only the pipeline contains"
    write(
        lists.work_dir / "api" / "pipelineJobs" / "run-00000.json",
        job_record("run-00000", "2026-01-01T00:00:00.000Z", pipelineSpec={"x": secret}),
    )
    lists.check()
    assert secret in json.dumps(lists.page())
    assert secret not in repr(lists._with.pipeline_jobs._store.index._known)
    assert secret.encode() not in (lists.work_dir / "api" / FILE).read_bytes()


def only_sound(work_dir: Path) -> Path:
    """Remove what is read each time: damaged records, and what has not ended."""
    for path in ("pipelineJobs/cut", "pipelineJobs/run-00070", "customJobs/2", "schedules/1"):
        (work_dir / "api" / f"{path}.json").unlink()
    shutil.rmtree(work_dir / "run-00070")
    for number in range(NUM_JOBS):
        if STATES[number % 5] in ("RUNNING", "PENDING"):
            shutil.rmtree(work_dir / f"run-{number:05}")
    return work_dir


def listed(lists: Lists) -> list[Any]:
    return [lists.pages(), lists.pages(filter="labels.team=a"), lists.pages(collection="customJobs"), lists.runs()]


def test_the_first_list_of_the_next_server_reads_no_record_that_is_at_rest(tmp_path: Path) -> None:
    work_dir = only_sound(fill(tmp_path / "runs"))
    before = listed(Lists(work_dir))
    after = Lists(work_dir)
    with files_opened() as opened:
        after.runs()
        assert after.page(pageSize="1", collection="customJobs")["customJobs"]
        assert after.page(filter="display_name=none") == {"pipelineJobs": []}
    # The only one is that of the page.
    assert opened == [str(work_dir / "api" / "customJobs" / "1.json")]
    assert (listed(after), stat.S_IMODE((work_dir / "api" / FILE).stat().st_mode)) == (before, 0o600)


def test_what_changed_between_two_servers_is_in_the_first_list(tmp_path: Path) -> None:
    lists = Lists(only_sound(fill(tmp_path / "runs")))
    listed(lists)
    in_place(lists.work_dir / "run-00000" / "run.json", "SUCCEEDED", "CANCELLED")
    shutil.rmtree(lists.work_dir / "run-00001")
    (lists.work_dir / "api" / "pipelineJobs" / "run-00002.json").unlink()
    write_job(lists.work_dir, 300)
    after = Lists(lists.work_dir)
    after.check()
    after.check(filter="state=PIPELINE_STATE_CANCELLED")
    moved = lists.work_dir.rename(tmp_path / "moved")
    Lists(moved).check()
    assert str(tmp_path / "runs") not in json.dumps(Lists(moved).runs())


def _rows(path: Path, change: str) -> None:
    with sqlite3.connect(path) as file:
        file.execute(change)
    file.close()


DAMAGE: dict[str, Callable[[Path], object]] = {
    "empty": lambda path: path.write_bytes(b""),
    "no database": lambda path: path.write_bytes(b"x" * 10_000),
    "cut": lambda path: os.truncate(path, path.stat().st_size // 2),
    "random pages": lambda path: path.write_bytes(path.read_bytes()[:4096] + os.urandom(8192)),
    "another table": lambda path: (_rows(path, "DROP TABLE summaries"), _rows(path, "CREATE TABLE summaries (a)")),
    "no JSON": lambda path: _rows(path, "UPDATE summaries SET content = '{' WHERE id = 'run-00000'"),
    "two values": lambda path: _rows(path, "UPDATE summaries SET content = '1,2' WHERE id = 'run-00000'"),
    "no text": lambda path: _rows(path, "UPDATE summaries SET content = x'ff' WHERE id = 'run-00000'"),
    "another format": lambda path: _rows(path, f"UPDATE origin SET format = {FORMAT + 1}"),
    "a folder": lambda path: (path.unlink(), path.mkdir()),
    "a link": lambda path: (path.unlink(), path.symlink_to("/dev/null")),
    "gone": lambda path: path.unlink(),
}


@pytest.mark.parametrize("kind", [*DAMAGE, "another server writes"])
def test_lists_are_right_whatever_happens_to_the_file(tmp_path: Path, kind: str) -> None:
    lists = Lists(fill(tmp_path / "runs"))
    listed(lists)
    path = lists.work_dir / "api" / FILE
    with closing(sqlite3.connect(path, isolation_level=None)) as busy:
        if kind == "another server writes":
            busy.execute("BEGIN EXCLUSIVE")
        else:
            DAMAGE[kind](path)
        after = Lists(lists.work_dir)
        after.check()
        write_job(lists.work_dir, 300)
        after.check()
    Lists(lists.work_dir).check()


def test_a_full_disk_loses_no_list(tmp_path: Path) -> None:
    """In a process that cannot write a file of more than 20 KB."""
    lists = Lists(fill(tmp_path / "runs"))
    code = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, 20_000))
from pathlib import Path
from localvertex_tests.api.rest.test_index import Lists, listed
found = Lists(Path({str(lists.work_dir)!r}))
found.check()
found.check()
"""
    path = [str(Path(__file__).parents[3]), *sys.path]
    done = subprocess.run(
        [sys.executable, "-c", code],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    lists.check()


def test_another_summary_of_the_same_record_has_another_format(tmp_path: Path) -> None:
    """When this fails, count `FORMAT` up, and write the digest that was found."""
    lists = Lists(only_sound(fill(tmp_path / "runs")))
    listed(lists)
    with sqlite3.connect(lists.work_dir / "api" / FILE) as file:
        rows = file.execute("SELECT collection, id, content FROM summaries ORDER BY 1, 2").fetchall()
    file.close()
    text = json.dumps(rows).replace(str(lists.work_dir), "WORK")
    assert len(rows) > NUM_JOBS
    assert (FORMAT, hashlib.sha256(text.encode()).hexdigest()[:16]) == (2, "9ebdf12e6c92e6b7")
