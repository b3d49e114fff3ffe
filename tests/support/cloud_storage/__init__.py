"""A Cloud Storage of our own for the tests: a real server on loopback that TensorFlow's gs:// talks to.

TensorFlow has no setting for another endpoint. It is led here by `https_proxy` (a CONNECT proxy that answers every
Google API name itself) and `CURL_CA_BUNDLE` (the authority that signed those names).
"""
