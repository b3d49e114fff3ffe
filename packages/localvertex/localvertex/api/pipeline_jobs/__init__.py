"""Pipeline jobs over the API: requests, records, views and batches. Their runs are those of runner."""
