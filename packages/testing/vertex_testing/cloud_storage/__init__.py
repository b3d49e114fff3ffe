"""A Cloud Storage server for the tests, on loopback.

google-cloud-storage finds it by STORAGE_EMULATOR_HOST, and sends it no credentials.

TensorFlow has no setting for the endpoint. It is redirected by `https_proxy` (a CONNECT proxy that answers for every
Google API name) and `CURL_CA_BUNDLE` (the authority that signed those names).
"""
