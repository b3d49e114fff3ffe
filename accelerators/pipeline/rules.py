"""Rules that only pipelines need: locations, images, the pipeline root, and what is set on single steps."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import replace
from datetime import date
from typing import Any

from accelerators.catalogue.catalogue import Catalogue
from accelerators.job.finding import Finding
from accelerators.job.values import is_placeholder
from accelerators.pipeline.graph import Step, mapping
IMPORTS
from userinput.spelling import listed

