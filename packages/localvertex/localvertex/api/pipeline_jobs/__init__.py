"""Pipeline jobs over the API: requests, records, views and batches. Runs are executed by `runner`."""
