"""How a model is used: a text for users, from a step or of this project, with interpreter and path filled in."""

import shlex
import sys

PREDICT = "{python} -m trainer.predict {path}"
"""The command of the image pipeline's own models; it asks for the image, so that it works as it is pasted."""


def fill(text: str, path: str) -> str:
    """Return a text with the words of a shell in place of {python} and {path}.

    Args:
        text: Such as `PREDICT`, or what a step has noted.
        path: The model's files, or their address.
    """
    for name, word in {"{python}": sys.executable, "{path}": path}.items():
        text = text.replace(name, shlex.quote(word))
    return text
