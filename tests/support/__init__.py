"""Classes and programs that several test packages share: servers, jobs, gcloud and Cloud Storage; no fixtures."""
