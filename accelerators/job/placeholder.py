"""Tells an image address that somebody still has to fill in from a real one."""

import re

OWN_PREFIX = "placeholder/"
"""`python compile.py` without --image writes such images: the file then runs on this machine only."""

# Real image paths are in small letters (OCI distribution specification, <name>); a tag may have capitals.
_UNFILLED = re.compile(r"[<>{}$%\[\]]|\.\.\.|\bexample\.(?:com|org)\b|(?:^|/)your-(?:project|image|repo|registry)")
_CAPITALS = re.compile(r"[A-Z]")


def is_placeholder(image: object) -> bool:
    """Return whether this is no image address yet, such as "gcr.io/PROJECT_ID/train" or "<your image>".

    A value that is not text is none: it is missing or only known at run time.
    """
    # "{{$.inputs.parameters['image']}}" is filled in by the pipeline itself.
    if not isinstance(image, str) or not image or "{{$" in image:
        return False
    name = image.split("@", 1)[0]
    head, _, last = name.rpartition("/")
    path = f"{head}/{last.split(':', 1)[0]}"
    return image.startswith(OWN_PREFIX) or bool(_UNFILLED.search(name) or _CAPITALS.search(path))
