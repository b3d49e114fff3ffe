"""A fake gcloud for PATH, with the flags, fields and messages of gcloud 528: labels, descriptions, owners, policies.

The environment variable GCLOUD_STATE names the file of its state, GCLOUD_FAILS a command that it refuses, and
GCLOUD_SAYS a command whose output it replaces with GCLOUD_TEXT.
"""

import json
import os
import re
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    # It is started a thousand times, and typing and pathlib are a third of its start.
    from typing import Any, NoReturn

DIGEST = "sha256:" + "d" * 64
NUMBERS = {"my-project": "111111111111", "other-project": "222222222222"}
"""The projects by id; the caller may use only the first."""
_MINE = "my-project"
_BINDING = {"member", "role", "condition"}
_FLAGS: dict[str, set[str]] = {
    "projects describe": set(),
    "services list": {"enabled"},
    "services enable": set(),
    "storage buckets create": {"location", "uniform-bucket-level-access", "public-access-prevention"},
    "storage buckets describe": {"raw"},
    "storage buckets update": {"update-labels"},
    "storage objects list": {"limit"},
    "storage rm": {"recursive"},
    "artifacts repositories create": {"repository-format", "location", "labels", "description"},
    "artifacts repositories describe": {"location"},
    "artifacts repositories list": {"location"},
    "artifacts repositories update": {"location", "update-labels", "description"},
    "artifacts repositories delete": {"location"},
    "artifacts docker images describe": set(),
    "iam service-accounts create": {"description", "display-name"},
    "iam service-accounts describe": set(),
    "iam service-accounts update": {"description", "display-name"},
    "iam service-accounts delete": set(),
    "builds submit": {"config", "substitutions"},
    "secrets create": {"data-file"},
}
"""Command -> its flags, besides the common ones."""
_GROUPS = ("projects", "storage buckets", "artifacts repositories", "iam service-accounts", "secrets")
for _group in _GROUPS:
    _where = {"location"} if _group.startswith("artifacts") else set()
    _FLAGS[f"{_group} get-iam-policy"] = _where
    for _verb in ("add", "remove"):
        _FLAGS[f"{_group} {_verb}-iam-policy-binding"] = _where | _BINDING


def empty() -> "dict[str, Any]":
    """Return the state of a world in which nothing was created yet."""
    kinds = ("buckets", "repositories", "accounts", "images", "policies")
    return {"calls": [], "services": [], **{kind: {} for kind in kinds}}


class _Gcloud:
    """One command on the state; a method per command, and what it returns is printed as JSON."""

    def __init__(
        self, command: str, thing: str, rest: list[str], flags: dict[str, str], state: "dict[str, Any]"
    ) -> None:
        self.command, self.thing, self.rest, self.flags, self.state = command, thing, rest, flags, state
        kinds = ("bucket", "repositor", "account", "secret")
        self.kind = next((kind for kind in kinds if kind in command), "project")

    def refuse(self, message: str, code: int = 1) -> "NoReturn":
        print(f"ERROR: (gcloud.{self.command.replace(' ', '.')}) {message}", file=sys.stderr)
        sys.exit(code)

    def run(self) -> "Any":
        verb = self.command.rpartition(" ")[2]
        if verb.endswith(("-iam-policy", "-iam-policy-binding")):
            return self.policy(verb)
        return getattr(self, self.command.replace(" ", "_").replace("-", "_"))()

    def projects_describe(self) -> "Any":
        if self.thing != _MINE:
            self.refuse(f"[me] does not have permission to access projects instance [{self.thing}]")
        return {"projectId": _MINE, "projectNumber": NUMBERS[_MINE], "lifecycleState": "ACTIVE"}

    def services_list(self) -> "Any":
        return [{"config": {"name": name}, "state": "ENABLED"} for name in self.state["services"]]

    def services_enable(self) -> None:
        self.state["services"] += [self.thing, *self.rest]

    def bucket(self) -> "dict[str, Any]":
        found = self.state["buckets"].get(self.thing)
        if found is None:
            self.refuse(f"{self.thing} not found: 404.")
        if found["project"] != _MINE and not found.get("shared"):
            name = self.thing.removeprefix("gs://")
            self.refuse(f"[me] does not have permission to access b instance [{name}] (or it may not exist): 403")
        return dict(found)

    def storage_buckets_create(self) -> None:
        if self.thing in self.state["buckets"]:
            self.refuse("HTTPError 409: The requested bucket name is not available.")
        self.state["buckets"][self.thing] = {
            "project": self.flags["project"],
            "location": self.flags["location"].upper(),
            "labels": {},
            "objects": 0,
            "metageneration": 1,
            "flags": sorted(set(self.flags) - {"project", "location"}),
        }

    def storage_buckets_describe(self) -> "Any":
        found = self.bucket()
        shown = {"name": self.thing.removeprefix("gs://"), "location": found["location"]}
        # Labels are absent, not empty, where there are none; only --raw has the owner.
        shown |= {"labels": found["labels"]} if found["labels"] else {}
        if "raw" not in self.flags:
            return shown
        flags = found.get("flags", [])
        access = {
            "uniformBucketLevelAccess": {"enabled": "uniform-bucket-level-access" in flags},
            "publicAccessPrevention": "enforced" if "public-access-prevention" in flags else "inherited",
        }
        shown |= {"iamConfiguration": access, "metageneration": str(found.get("metageneration", 2))}
        return shown | {"projectNumber": NUMBERS[found["project"]]}

    def storage_buckets_update(self) -> None:
        found = self.bucket()
        found["labels"].update(_pairs(self.flags["update-labels"]))
        self.state["buckets"][self.thing] = found | {"metageneration": found.get("metageneration", 2) + 1}

    def storage_objects_list(self) -> "Any":
        # gs://bucket alone lists only what is not in a folder.
        self.thing, deep, _ = self.thing.partition("/**")
        return [{"name": f"a/{number}"} for number in range(self.bucket()["objects"])] if deep else []

    def storage_rm(self) -> None:
        if self.bucket()["project"] != _MINE:
            self.refuse("HTTPError 403: me does not have storage.objects.delete access")
        self.state["buckets"][self.thing]["objects"] = 0
        if os.environ.get("GCLOUD_FAILS") == "the bucket itself":
            self.refuse("HTTPError 409: The bucket you tried to delete is not empty.")
        del self.state["buckets"][self.thing]

    @property
    def repository(self) -> str:
        return f"{self.flags['project']}/{self.flags['location']}/{self.thing}"

    def artifacts_repositories_create(self) -> None:
        if "artifactregistry.googleapis.com" not in self.state["services"]:
            self.refuse("PERMISSION_DENIED: Artifact Registry API has not been used in project my-project before")
        self.state["repositories"][self.repository] = {"labels": _pairs(self.flags.get("labels", ""))}

    def artifacts_repositories_describe(self) -> "Any":
        found = self.state["repositories"].get(self.repository)
        if found is None:
            self.refuse("NOT_FOUND: Requested entity was not found.")
        project, location, name = self.repository.split("/")
        return {"name": f"projects/{project}/locations/{location}/repositories/{name}", "format": "DOCKER", **found}

    def artifacts_repositories_list(self) -> "Any":
        if self.flags["location"] != "all":
            self.refuse("this stand-in lists all locations only", code=2)
        hidden = os.environ.get("GCLOUD_REGION_DOWN")
        if hidden:
            # So does gcloud itself, and ends with 0.
            place = f"projects/{self.flags['project']}/locations/{hidden}"
            print(f"WARNING: Failed to list repositories for project {place}", file=sys.stderr)
        split = [(*key.split("/"), found) for key, found in self.state["repositories"].items()]
        return [
            {"name": f"projects/{project}/locations/{location}/repositories/{name}", "format": "DOCKER", **found}
            for project, location, name, found in split
            if project == self.flags["project"] and location != hidden
        ]

    def artifacts_repositories_update(self) -> None:
        self.artifacts_repositories_describe()
        self.state["repositories"][self.repository]["labels"].update(_pairs(self.flags["update-labels"]))

    def artifacts_repositories_delete(self) -> None:
        self.artifacts_repositories_describe()
        del self.state["repositories"][self.repository]

    def artifacts_docker_images_describe(self) -> "Any":
        if self.thing not in self.state["images"]:
            self.refuse("Image not found.\n\nA valid container image has the format of LOCATION-docker.DOMAIN/...")
        return {"image_summary": {"digest": self.state["images"][self.thing]}}

    def builds_submit(self) -> None:
        for pair in self.flags["substitutions"].split(","):
            name, _, value = pair.partition("=")
            if name.endswith("_IMAGE"):
                self.state["images"][value] = DIGEST

    def secrets_create(self) -> None:
        if "secretmanager.googleapis.com" not in self.state["services"]:
            self.refuse("PERMISSION_DENIED: Secret Manager API has not been used in project my-project before")
        if self.flags["data-file"] != "-" or not sys.stdin.read():
            self.refuse("the secret is on the command line or empty")

    def iam_service_accounts_create(self) -> None:
        email = f"{self.thing}@{self.flags['project']}.iam.gserviceaccount.com"
        if email in self.state["accounts"]:
            self.refuse(f"Resource in projects [my-project] is the subject of a conflict: {email} already exists")
        self.state["accounts"][email] = {"description": self.flags.get("description", "")}

    def iam_service_accounts_describe(self) -> "Any":
        found = self.state["accounts"].get(self.thing)
        if found is None:
            self.refuse("NOT_FOUND: Unknown service account.")
        shown = {"email": self.thing, "projectId": _MINE}
        return shown | ({"description": found["description"]} if found["description"] else {})

    def iam_service_accounts_update(self) -> None:
        self.iam_service_accounts_describe()
        self.state["accounts"][self.thing]["description"] = self.flags["description"]

    def iam_service_accounts_delete(self) -> None:
        self.iam_service_accounts_describe()
        del self.state["accounts"][self.thing]
        text = json.dumps(self.state["policies"])
        # A policy keeps the member, under a name that no new account of this address gets.
        gone = text.replace(f"serviceAccount:{self.thing}", f"deleted:serviceAccount:{self.thing}?uid=1")
        self.state["policies"] = json.loads(gone)

    def policy(self, verb: str) -> "Any":
        key = self.repository if self.kind == "repositor" else self.thing
        bindings = self.state["policies"].setdefault(f"{self.kind} {key}", [])
        if verb == "get-iam-policy":
            return {"etag": "BwX=", "version": 1} | ({"bindings": bindings} if bindings else {})
        if any("condition" in each for each in bindings) and self.flags.get("condition") != "None":
            self.refuse("a binding without a condition is prohibited in non-interactive mode")
        member, role = self.flags["member"], self.flags["role"]
        found = [each for each in bindings if each["role"] == role and "condition" not in each]
        if verb.startswith("remove"):
            if not any(member in each["members"] for each in found):
                self.refuse("Policy binding with the specified principal, role, and condition not found!")
            found[0]["members"].remove(member)
            bindings[:] = [each for each in bindings if each["members"]]
        elif member.partition(":")[2] not in self.state["accounts"]:
            self.refuse(f"INVALID_ARGUMENT: Service account {member.partition(':')[2]} does not exist.")
        elif found:
            found[0]["members"].append(member)
        else:
            bindings.append({"role": role, "members": [member]})
        return None


def _pairs(text: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in text.split(",") if pair)


def _write(state: "dict[str, Any]") -> None:
    with open(os.environ["GCLOUD_STATE"], "w") as file:
        json.dump(state, file)


def _main() -> None:
    state = empty()
    if os.path.exists(os.environ["GCLOUD_STATE"]):
        with open(os.environ["GCLOUD_STATE"]) as file:
            state = json.load(file)
    words = [word for word in sys.argv[1:] if not word.startswith("--")]
    flags = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
    state["calls"].append(sys.argv[1:])
    _write(state)
    line = " ".join(words)
    command = max((known for known in _FLAGS if f"{line} ".startswith(f"{known} ")), key=len, default="")
    thing, *rest = [*words[len(command.split()) :], ""]
    gcloud = _Gcloud(command, thing, rest[:-1], flags, state)
    unknown = sorted(set(flags) - _FLAGS.get(command, set()) - {"project", "format", "quiet"})
    if not command or unknown:
        gcloud.refuse(f"unrecognized arguments: {unknown or line}", code=2)
    if sys.stdin.isatty():
        gcloud.refuse("a question that the user does not see")
    if re.search(os.environ.get("GCLOUD_FAILS") or "nothing", line):
        gcloud.refuse("PERMISSION_DENIED: you may not do that")
    try:
        answer = gcloud.run()
    finally:
        _write(state)
    if re.search(os.environ.get("GCLOUD_SAYS") or "nothing", line):
        print(os.environ["GCLOUD_TEXT"])
    elif answer is not None:
        print(json.dumps(answer))


if __name__ == "__main__":
    _main()
