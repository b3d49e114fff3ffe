"""What several test packages share: a served endpoint, a training job of several workers, gcloud and Cloud Storage.

Fixtures are in the conftest.py of the package that uses them; here are the classes and programs behind them.
"""
