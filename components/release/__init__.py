"""The steps `record` and `deploy`: the registration is completed, and the version put on an endpoint and tried."""
