"""Runs all flows over one transport, in a process of its own, as gRPC reads its roots once; prints the outcomes.

Arguments: work folder of the server, transport, and names of flows to run only these.
"""

import json
import sys

from google.cloud.aiplatform import jobs, pipeline_jobs
from localvertex_tests.api.flows.transports.flow import compile_pipeline, outcome
from localvertex_tests.api.flows.transports.outcomes import FLOWS

from localvertex import client


def main() -> None:
    """Run the flows in the current folder."""
    for module in (pipeline_jobs, jobs):
        # The SDK polls every 5 s, which is too slow for a test.
        module._JOB_WAIT_TIME = 0.2
    compile_pipeline()
    work_dir, transport, *names = sys.argv[1:]
    found = {}
    for name in names or FLOWS:
        client.init(work_dir, api_transport=transport, staging_bucket="gs://staging")
        found[name] = outcome(FLOWS[name].run)
    print(json.dumps(found))


if __name__ == "__main__":
    main()
