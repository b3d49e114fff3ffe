"""Checks of Vertex AI training jobs and conversion of AI Platform Training jobs; no job is submitted here.

It uses only the standard library, and PyYAML to read and write YAML.
"""

from accelerators.catalogue.catalogue import Catalogue, load_catalogue
from accelerators.check import check_custom_job, check_deployment, check_worker_pools, custom_job_fields
from accelerators.document import check_file
from accelerators.job.finding import Finding
from accelerators.pipeline.check import check_pipeline
from localvertex_base.userinput.errors import UserError

__all__ = [
    "Catalogue",
    "Finding",
    "UserError",
    "check_custom_job",
    "check_deployment",
    "check_file",
    "check_pipeline",
    "check_worker_pools",
    "custom_job_fields",
    "load_catalogue",
]
