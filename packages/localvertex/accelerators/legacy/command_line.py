"""The reader of pasted command lines: `gcloud ai-platform jobs submit training` or `gcloud ml-engine ...`."""

import re
import shlex
from dataclasses import dataclass, field

from accelerators.legacy.report import LegacyInputError, Report
from localvertex_base.userinput.spelling import closest, quote

ROLE_FLAGS = {"master": "master", "worker": "worker", "parameter-server": "parameterServer"}
"""Task type in the names of flags -> task type in the fields of a config."""
_SERVICES = ("ai-platform", "ml-engine")
_TRACKS = ("alpha", "beta")
_COMMAND = ("jobs", "submit", "training")

_VALUE_FLAGS = frozenset(
    "--config --module-name --package-path --packages --staging-bucket --job-dir --region --scale-tier "
    "--runtime-version --python-version --use-chief-in-tf-config --service-account --kms-key --kms-keyring "
    "--kms-location --kms-project --labels --network --tpu-tf-version --worker-count --parameter-server-count".split()
) | {f"--{role}-{part}" for role in ROLE_FLAGS for part in ("machine-type", "accelerator", "image-uri")}
"""Flags of the command with a value (gcloud SDK 528, alpha and beta included)."""

_SWITCHES = frozenset({"--enable-web-access", "--stream-logs", "--async"})
"""Flags of the command without a value; --no-... disables them."""

_GLOBAL_VALUES = frozenset(
    "--project --account --billing-project --configuration --flags-file --flatten --format --access-token-file "
    "--impersonate-service-account --trace-token --verbosity".split()
)
_GLOBAL_SWITCHES = frozenset("--quiet -q --log-http --user-output-enabled --help -h".split())
# Words that end a command in a shell; another command or a redirection follows.
_SHELL_ENDS = frozenset({"|", "||", "&&", ";", "&", ">", ">>", "2>&1", "2>"})
_SUBSTITUTION = re.compile(r"\$\([^()]*\)|`[^`\n]*`|<[A-Za-z][\w -]*>")
"""A command's output or a guide's placeholder; its blanks do not separate words."""
_BLANK = "\0"
_DASHES = ("\u2013", "\u2014", "\u2212")


@dataclass(kw_only=True)
class Command:
    """A command line.

    Attributes:
        job: The positional JOB; empty if it is missing.
        flags: Flag -> value, which is "true" or "false" for switches.
        user_args: The words after "--"; None without "--".
    """

    job: str = ""
    flags: dict[str, str] = field(default_factory=dict)
    user_args: list[str] | None = None


def read_command(words: list[str], report: Report) -> Command:
    """Read a command line.

    Args:
        words: The words as a shell passes them, or a single word with the whole line as it was pasted.
        report: Gets a remark for everything that is left out.

    Raises:
        LegacyInputError: It is another command or has unknown flags.
    """
    split = _without_prompt(_words(words, report))
    named = split[:1] == ["gcloud"]
    own, user_args = _split(split[named:])
    command = Command(user_args=_without_ellipsis(user_args, report))
    problems: list[str] = []
    positional = _flags(own, command, problems, report)
    _positional(positional, command, problems, named=named)
    if problems:
        raise LegacyInputError(problems)
    return command


def _words(words: list[str], report: Report) -> list[str]:
    """Return the words of a command line, which may come as a single word.

    Raises:
        LegacyInputError: A quote is not closed.
    """
    if len(words) == 1 and any(letter.isspace() for letter in words[0]):
        # Line continuations of a POSIX shell, cmd.exe and PowerShell.
        line = words[0].replace("\\\n", " ").replace("^\n", " ").replace("`\n", " ").rstrip().rstrip("\\^`")
        try:
            words = [word.replace(_BLANK, " ") for word in shlex.split(_SUBSTITUTION.sub(_in_one_word, line))]
        except ValueError as error:
            raise LegacyInputError([f"the command line cannot be split into words: {error}"]) from None
        for index, word in enumerate(words):
            if word in _SHELL_ENDS:
                report.add("dropped", " ".join(words[index:])[:60], "not part of the gcloud command")
                words = words[:index]
                break
    return [word for word in words if word not in ("\\", "\n", "^")]


def _in_one_word(found: "re.Match[str]") -> str:
    return re.sub(r"\s", _BLANK, found.group())


def _without_prompt(words: list[str]) -> list[str]:
    """Drop the words before gcloud: a prompt, the `!` of a notebook, `VARIABLE=value`."""
    for index, word in enumerate(words):
        if word.lstrip("!@$%").rpartition("/")[2] in ("gcloud", "gcloud.cmd"):
            return ["gcloud", *words[index + 1 :]]
        if word == "--" or word.startswith("--"):
            break
    return words


def _split(words: list[str]) -> tuple[list[str], list[str] | None]:
    if "--" not in words:
        return words, None
    index = words.index("--")
    return words[:index], words[index + 1 :]


def _without_ellipsis(user_args: list[str] | None, report: Report) -> list[str] | None:
    if user_args is None or "..." not in user_args:
        return user_args
    report.add("dropped", "-- ...", "an ellipsis from the documentation; write your own arguments there")
    return [word for word in user_args if word != "..."]


def _flags(words: list[str], command: Command, problems: list[str], report: Report) -> list[str]:
    positional: list[str] = []
    rest = iter(words)
    waiting: str | None = None
    for word in rest:
        word = _plain_dashes(word, report)
        if waiting is not None:
            if word.startswith("--"):
                problems.append(f"{waiting} has no value (a shell variable that is not set?); give it one")
            else:
                command.flags[waiting] = word
                waiting = None
                continue
        waiting = None
        if not word.startswith("-"):
            positional.append(word)
            continue
        name, equals, value = word.partition("=")
        if name in _VALUE_FLAGS | _GLOBAL_VALUES:
            if equals:
                command.flags[name] = value
            else:
                waiting = name
        else:
            _switch(name, command, problems)
    if waiting is not None:
        problems.append(f"{waiting} has no value (a shell variable that is not set?); give it one")
    return positional


def _plain_dashes(word: str, report: Report) -> str:
    if not word.startswith(_DASHES):
        return word
    report.add("changed", word, "a typographic dash, as on web pages; read as --")
    return "--" + word.lstrip("".join(_DASHES) + "-")


def _switch(name: str, command: Command, problems: list[str]) -> None:
    positive = "--" + name.removeprefix("--no-") if name.startswith("--no-") else name
    if positive in _SWITCHES:
        command.flags[positive] = "false" if positive != name else "true"
    elif positive not in _GLOBAL_SWITCHES:
        near = closest(name, _VALUE_FLAGS | _SWITCHES)
        hint = f"did you mean {near[0]}?" if near else "arguments of your own program go after ' -- '"
        problems.append(f"{quote(name)} is not a flag of `gcloud ai-platform jobs submit training`; {hint}")


def _positional(words: list[str], command: Command, problems: list[str], *, named: bool) -> None:
    left = [word for word in words if word]
    if left and left[0] in _TRACKS:
        left = left[1:]
    if named or (left and left[0] in _SERVICES):
        if not left or left[0] not in _SERVICES or tuple(left[1:4]) != _COMMAND:
            found = " ".join(left[:4])
            problems.append(f"the command is {quote(found)}; expected `gcloud ai-platform jobs submit training`")
            return
        left = left[4:]
    if left:
        command.job = left[0]
    if len(left) > 1:
        extra = quote(" ".join(left[1:]))
        problems.append(
            f"unexpected {extra} after the job's name {quote(left[0])}; arguments of your own program go after ' -- '"
        )
