"""The same run without the page: a command line, and a program with Google's SDK."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from localvertex.console.creating.form import as_text
from localvertex.console.creating.request import Settings
from localvertex.console.creating.source import Source, short
from localvertex.runner.engine import Options

_DEFAULTS = Options()

_SDK = """\
from google.cloud import aiplatform

from localvertex import client

client.init({init})
job = aiplatform.PipelineJob(
{arguments}
)
job.submit()
"""


@dataclass(frozen=True, kw_only=True)
class Equivalents:
    """The content of the form."""

    source: Source
    values: Mapping[str, Any]
    files: Mapping[str, tuple[str, str]]
    """Schema and path of the input artifacts."""
    ids: Mapping[str, str]
    """Ids of those that the metadata store has."""
    settings: Settings
    region: str
    work_dir: Path

    @property
    def command(self) -> str:
        """The command line; display name and labels exist in the API only."""
        path, declared = self.source.path, self.source.pipeline.root.input_parameters
        words = ["python", "-m", "localvertex", "run", f"./{path}" if path.startswith("-") else path]
        for name, value in self.values.items():
            words += ["--parameter", f"{name}={as_text(value, declared[name].type)}"]
        for name, (_, uri) in self.files.items():
            words += ["--input-artifact", f"{name}={uri}"]
        words += ["--region", self.region] if self.region != _DEFAULTS.region else []
        words += ["--work-dir", self._folder] if self._folder != str(_DEFAULTS.work_dir) else []
        words += ["--fail-fast"] if self.settings.fail_fast else []
        return " ".join(map(_quote, words + ([] if self.settings.use_cache else ["--no-cache"])))

    @property
    def program(self) -> str:
        """The program; empty when the SDK cannot send this run, see `obstacle`."""
        if self.obstacle:
            return ""
        name = self.settings.display_name or self.source.pipeline.name
        arguments: dict[str, Any] = {"display_name": name, "template_path": self.source.path}
        arguments |= {"parameter_values": dict(self.values)} if self.values else {}
        arguments |= {"pipeline_root": "/unused"}
        arguments |= {} if self.settings.use_cache else {"enable_caching": False}
        arguments |= {"failure_policy": "fast"} if self.settings.fail_fast else {}
        arguments |= {"labels": dict(self.settings.labels)} if self.settings.labels else {}
        lines = [f"    {key}={value!r}," for key, value in arguments.items()]
        if self.files:
            ids = [f"        {name!r}: {self._artifact_id(name)}," for name in self.files]
            lines += ["    input_artifacts={", *ids, "    },"]
        init = [repr(self._folder), *([f"location={self.region!r}"] if self.region != _DEFAULTS.region else [])]
        return _SDK.format(init=", ".join(init), arguments="\n".join(lines))

    @property
    def obstacle(self) -> str:
        """Why the SDK cannot send this run; empty if it can."""
        if len(self.source.documents) > 1:
            return "the SDK reads files with one document only; this one has platform settings in a second one"
        if self.source.pipeline.schema_version == "2.0.0" and self.source.pipeline.root.input_parameters:
            return "the SDK sends parameters of schema version 2.0.0 in a form that the API no longer takes"
        if self.source.is_job and "runtimeConfig" not in self.source.documents[0]:
            return "the SDK reads a PipelineJob only with runtimeConfig"
        return ""

    def _artifact_id(self, name: str) -> str:
        """Return the expression for the id of an input artifact."""
        if name in self.ids:
            return repr(self.ids[name])
        schema, uri = self.files[name]
        return f"aiplatform.Artifact.create(schema_title={schema!r}, uri={uri!r}).name"

    @property
    def _folder(self) -> str:
        return short(self.work_dir)


def _quote(word: str) -> str:
    """Return a word for a shell; control characters in pasted text act on the terminal, even in quotes."""
    if word.isprintable():
        return shlex.quote(word)
    return f"$'{''.join(map(_escape, word))}'"


def _escape(character: str) -> str:
    if character.isprintable() and character not in "\\'":
        return character
    return "".join(f"\\{byte:03o}" for byte in character.encode(errors="surrogatepass"))
