"""Pipeline jobs over the API: requests, records and views. Runs are executed by `runner`."""
