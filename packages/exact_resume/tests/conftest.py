"""Shared by all tests of exact_resume: a Cloud Storage server on loopback, and signals as a shell leaves them."""

import os
import signal

from vertex_testing.cloud_storage.fixtures import cloud_storage as cloud_storage, server as server

# Few attempts, milliseconds apart.
os.environ.setdefault("GCS_RETRY_CONFIG_MAX_RETRIES", "2")
os.environ.setdefault("GCS_RETRY_CONFIG_INIT_DELAY_TIME_US", "1000")
os.environ.setdefault("GCS_RETRY_CONFIG_MAX_DELAY_TIME_US", "20000")

# A shell makes its background jobs ignore Ctrl-C, and their children inherit that; tests send it.
signal.signal(signal.SIGINT, signal.default_int_handler)
