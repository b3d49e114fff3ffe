"""Checks of Vertex AI training jobs and conversion of AI Platform Training jobs; no job is submitted here.

It uses only the standard library, and PyYAML to read and write YAML.
"""

from localvertex._base.userinput.errors import UserError
from localvertex.machines.catalogue.catalogue import Catalogue, load_catalogue
from localvertex.machines.check import check_custom_job, check_deployment, check_worker_pools, custom_job_fields
from localvertex.machines.document import check_file
from localvertex.machines.job.finding import Finding
from localvertex.machines.pipeline.check import check_pipeline

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
