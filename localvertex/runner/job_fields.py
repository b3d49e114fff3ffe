"""Values of the job-wide placeholders. What a laptop has none of is empty, as on Vertex when it is not set."""

from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

from localvertex.runner.options import Options


def new_job_fields(run_id: str, work_dir: Path, options: Options) -> dict[str, str]:
    """Those of a run that begins now."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
    uuid = str(uuid4().int >> 66)
    scheduled = options.schedule_time or now
    return job_fields(run_id, str(work_dir), options.project, options.region, now, uuid, scheduled)


def earlier_job_fields(record: dict[str, Any]) -> dict[str, str]:
    """Those of a run that goes on: the same as when it began."""
    names = ("run_id", "work_dir", "project", "region", "create_time", "uuid")
    schedule_time = str(record.get("schedule_time", record["create_time"]))
    return job_fields(**{name: str(record[name]) for name in names}, schedule_time=schedule_time)


def job_fields(
    run_id: str, work_dir: str, project: str, region: str, create_time: str, uuid: str, schedule_time: str
) -> dict[str, str]:
    """All of them (placeholders.JOB_FIELDS)."""
    return {
        "pipeline_root": work_dir,
        "pipeline_job_name": run_id,
        "pipeline_job_uuid": uuid,
        "pipeline_job_resource_name": f"projects/{project}/locations/{region}/pipelineJobs/{run_id}",
        "pipeline_job_create_time_utc": create_time,
        "pipeline_job_schedule_time_utc": schedule_time,
        "pipeline_google_cloud_project_id": project,
        "pipeline_google_cloud_location": region,
        "pipeline_service_account": "",
        "pipeline_network": "",
        "pipeline_persistent_resource_id": "",
        "pipeline_encryption_key_name": "",
    }
