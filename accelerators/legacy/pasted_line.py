"""A command line as it was pasted from a shell, a notebook or a web page, split into its words."""

import shlex

from accelerators.legacy.report import LegacyInputError, Report

# What ends a command in a shell; the rest of the line is another command or a redirection.
_SHELL_ENDS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "2>&1", "2>"})


def words_of(words: list[str], report: Report) -> list[str]:
    """Return the words of a command line, which may come as one word that holds the whole line.

    Raises:
        LegacyInputError: If a quotation in it does not end.
    """
    if len(words) == 1 and any(letter.isspace() for letter in words[0]):
        # Line continuations of a POSIX shell, cmd.exe and PowerShell.
        line = words[0].replace("\\\n", " ").replace("^\n", " ").replace("`\n", " ")
        try:
            words = shlex.split(line)
        except ValueError as error:
            raise LegacyInputError([f"the command line cannot be split into words: {error}"]) from None
        for place, word in enumerate(words):
            if word in _SHELL_ENDS:
                report.add("dropped", " ".join(words[place:])[:60], "what follows the command in the shell")
                words = words[:place]
                break
    return [word for word in words if word not in ("\\", "\n", "^")]


def without_prompt(words: list[str]) -> list[str]:
    """Drop what stands before gcloud: a prompt, `!` of a notebook, `VARIABLE=value`."""
    for place, word in enumerate(words):
        if word.lstrip("!@$%").rpartition("/")[2] in ("gcloud", "gcloud.cmd"):
            return ["gcloud", *words[place + 1 :]]
        if word == "--" or word.startswith("--"):
            break
    return words
