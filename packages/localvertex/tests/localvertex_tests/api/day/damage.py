"""Damaged records, planted beside intact ones."""

import json
import random
from pathlib import Path

from vertex_testing.server import PARENT

_TEXTS = (b"", b'{"name": "', b"\xff\xfe", b"[]", b"{}", b'{"name": 3}')


def plant(work_dir: Path, source: random.Random) -> list[str]:
    """Write damaged schedules and jobs, and damage a run that has ended.

    Returns:
        The paths to delete over the API.
    """
    planted = []
    for collection in ("schedules", "pipelineJobs", "customJobs"):
        number = f"planted-{source.getrandbits(40)}"
        path = work_dir / "api" / collection / f"{number}.json"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(source.choice(_TEXTS))
        planted.append(f"{collection}/{number}")
    run_dir = work_dir / f"planted-{source.getrandbits(40)}"
    run_dir.mkdir()
    (run_dir / "run.json").write_text('{"run_id": 3}')
    name = f"{PARENT}/pipelineJobs/{run_dir.name}"
    request = {"name": name, "createTime": "2026-01-01T00:00:00+00:00", "pipelineSpec": {}}
    (work_dir / "api" / "pipelineJobs" / f"{run_dir.name}.json").write_text(json.dumps(request))
    return [*planted, f"pipelineJobs/{run_dir.name}"]
