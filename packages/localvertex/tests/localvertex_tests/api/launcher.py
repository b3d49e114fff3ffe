"""Runs one of Google's launchers unchanged against a local server: `python launcher.py WORK_DIR MODULE ARGUMENTS...`.

The launchers derive their endpoint from the location, so this script redirects the two clients that they use.
"""

import logging
import runpy
import sys
from pathlib import Path
from typing import Any

import google.auth
import requests
from google.cloud import aiplatform
from google_cloud_pipeline_components.container.v1.gcp_launcher import job_remote_runner, lro_remote_runner

from localvertex.api.access import token_file
from localvertex.client import Credentials

work_dir, module, *arguments = sys.argv[1:]
url, credentials = token_file.address(Path(work_dir)), Credentials(work_dir)
service_client, request = aiplatform.gapic.JobServiceClient, requests.Session.request


def client(**options: Any) -> Any:
    return service_client(transport="rest", credentials=credentials, client_options={"api_endpoint": url})


def redirected(session: requests.Session, method: str, address: str, **options: Any) -> requests.Response:
    return request(session, method, address.replace("https://us-central1-aiplatform.googleapis.com", url), **options)


aiplatform.gapic.JobServiceClient = client
requests.Session.request = lambda session, method, url, **options: redirected(session, method, url, **options)
google.auth.default = lambda **_: (credentials, "local-project")
job_remote_runner._POLLING_INTERVAL_IN_SECONDS = lro_remote_runner._POLLING_INTERVAL_IN_SECONDS = 0.2
# The test follows the launcher by its log.
logging.basicConfig(level=logging.INFO, stream=sys.stdout)
sys.argv = [module, *arguments]
runpy.run_module(module, run_name="__main__")
