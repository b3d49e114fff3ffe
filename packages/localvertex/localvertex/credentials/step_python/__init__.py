"""The folder that Python finds first in each step, see `sitecustomize`."""
