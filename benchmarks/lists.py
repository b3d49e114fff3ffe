"""Lists of `localvertex serve` with thousands of runs: with the index compared with reading all records.

Run it as `python -m benchmarks.lists`. The records of one real run are copied. Both answer the same requests in one
process, alternately; the figures are medians without HTTP.
"""

import argparse
import contextlib
import io
import json
import os
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from kfp import compiler, dsl

import localvertex
from benchmarks.measuring import median, parse, took
from localvertex.api.metadata.metadata import Metadata
from localvertex.api.pipeline_jobs.pipeline_jobs import COLLECTION, PipelineJobs
from localvertex.api.pipeline_jobs.request import new_resource
from localvertex.api.rest.call import Call, Location
from localvertex.api.rest.index import Index, Known, Records
from localvertex.api.rest.index_file import IndexFile
from localvertex.api.rest.store import Store

_LOCATION = Location(project="local-project", region="us-central1")

_QUERIES = {
    "a page of 100": {},
    "with a filter": {"filter": 'labels.team=a AND state!="PIPELINE_STATE_FAILED"'},
    "with an order": {"orderBy": "display_name, create_time"},
}


@dsl.component(base_image="python:3.11", install_kfp_package=False)
def double(n: int) -> int:
    """Double a number, to have a step without work."""
    return 2 * n


@dsl.pipeline(name="doubles")
def doubles(n: int = 3) -> None:
    """Run three steps."""
    for _ in range(3):
        n = double(n=n).output


def _make_runs(folder: Path, num_runs: int) -> Path:
    """Run the pipeline once and copy the records of the run; return the work folder."""
    file, work_dir = folder / "doubles.json", folder / "runs"
    compiler.Compiler().compile(doubles, str(file))
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        localvertex.run(file, options=localvertex.Options(work_dir=work_dir, run_id="first"))
    run = json.loads((work_dir / "first" / "run.json").read_text())
    jobs, spec = work_dir / "api" / COLLECTION, json.loads(file.read_text())
    jobs.mkdir(parents=True)
    an_hour_ago = time.time() - 3600
    for number in range(num_runs):
        run_id = f"doubles-{number:06d}"
        body = {"pipelineSpec": spec, "labels": {"team": "ab"[number % 2]}, "displayName": f"run {number % 7}"}
        job = new_resource(_LOCATION.child(COLLECTION, run_id), body, "")
        (work_dir / run_id).mkdir()
        for path, content in ((work_dir / run_id / "run.json", run), (jobs / f"{run_id}.json", job)):
            path.write_text(json.dumps(content))
            os.utime(path, (an_hour_ago, an_hour_ago))
    return work_dir


class _NoIndex(Index):
    """Reads all records for each list."""

    @contextlib.contextmanager
    def _now(self, records: Records) -> Iterator[Known]:
        """Read each record."""
        yield Known(entries={each: ("", records.summary(each)) for each in records.ids()})


def _jobs(work_dir: Path, *, is_indexed: bool) -> PipelineJobs:
    store = Store(work_dir)
    if not is_indexed:
        store.index = _NoIndex(IndexFile(folder=store.folder))
    return PipelineJobs(store, lambda _: None, localvertex.Options(), Metadata(store).runs)


def main() -> None:
    """Print the medians and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--repeats", type=int, default=5)
    options = parse(parser, runs=20, repeats=1)
    with tempfile.TemporaryDirectory() as folder:
        work_dir = _make_runs(Path(folder), options.runs)
        indexed, plain = _jobs(work_dir, is_indexed=True), _jobs(work_dir, is_indexed=False)
        # The first call imports Google's messages.
        plain.list_all(Call(location=_LOCATION))
        first = took(indexed.list_all, Call(location=_LOCATION))
        print(f"{options.runs} runs, median of {options.repeats}; the first list, which builds the index: {first}")
        call = Call(location=_LOCATION)
        starts = []
        for _ in range(options.repeats):
            restarted = _jobs(work_dir, is_indexed=True)
            sides = [_jobs(work_dir, is_indexed=False), restarted, restarted]
            starts.append([took(each.list_all, call) for each in sides])
        without, with_index, second = (median(each) for each in zip(*starts, strict=True))
        print(
            f"after a restart  all records {without}   index {with_index}   "
            f"{without.seconds / with_index.seconds:.1f} times as fast"
        )
        print(f"the second list, from which on the folders are watched, {second}")
        for name, query in _QUERIES.items():
            call = Call(location=_LOCATION, query=query)
            times = [[took(each.list_all, call) for each in (plain, indexed)] for _ in range(options.repeats)]
            without, with_index = (median(each) for each in zip(*times, strict=True))
            ratio = f"{without.seconds / with_index.seconds:.1f} times as fast"
            print(f"{name:15}  all records {without}   index {with_index}   {ratio}")


if __name__ == "__main__":
    main()
