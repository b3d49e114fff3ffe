"""`cloud.py down`: what must never happen, then what it removes."""

import json
import shlex
import subprocess
from typing import Any

import pytest

from cloud import main
from tests.pipelines.project.conftest import Script, World
from vertex_testing.in_process import call

ACCOUNT = "image-training@my-project.iam.gserviceaccount.com"
BUCKET = "gs://my-project-image-training"
REPOSITORY = "my-project/us-central1/image-training"
PRODUCTION = "production@my-project.iam.gserviceaccount.com"
EVERYTHING = ("down", "--with-bucket")


@pytest.fixture
def made(state_after_up: str, world: World) -> dict[str, Any]:
    """What exists after `up`."""
    world.file.write_text(state_after_up)
    return world.things


@pytest.fixture
def production(world: World) -> dict[str, Any]:
    """A bucket, a repository and an account of other programs, all with the same name."""
    world.add(
        "buckets", "gs://my-project-production", project="my-project", location="US", labels={"a": "b"}, objects=9
    )
    world.add("repositories", "my-project/us-central1/production", labels={})
    world.add("accounts", PRODUCTION, description="Serves our customers")
    roles = ("roles/aiplatform.user", "roles/logging.logWriter")
    bindings = [{"role": role, "members": [f"serviceAccount:{PRODUCTION}", "user:me@x.com"]} for role in roles]
    world.add_policy("project my-project", bindings)
    return world.things


def kept(before: dict[str, Any], world: World) -> bool:
    """Whether nothing was removed or changed, and no command tried to."""
    return world.things == before and not any("delete" in line or " rm " in line for line in world.changes)


@pytest.mark.usefixtures("production")
def test_what_others_made_is_never_removed(cloud: Script, world: World) -> None:
    before = world.things
    done = cloud(*EVERYTHING, "--yes", "--name", "production")
    assert done.returncode == 0, done.stderr
    assert kept(before, world)
    lines = done.stdout.splitlines()
    assert lines[0] == "Nothing to remove from my-project."
    for title in (
        f"service account {PRODUCTION}",
        "repository us-central1-docker.pkg.dev/my-project/production",
        "bucket gs://my-project-production",
    ):
        (line,) = [line for line in lines if line.startswith(title)]
        assert "is kept, since `cloud.py up` did not mark it" in line


@pytest.mark.parametrize("shared", [False, True])
def test_a_bucket_of_another_project_is_never_removed(
    cloud: Script, world: World, made: dict[str, Any], shared: bool
) -> None:
    state = world.things
    marked = state["buckets"][BUCKET] | {"project": "other-project", "shared": shared}
    world.add("buckets", BUCKET, **marked)
    done = cloud(*EVERYTHING, "--yes")
    assert done.returncode == 0, done.stderr
    assert world.things["buckets"] == {BUCKET: marked}
    assert f"{BUCKET} is in another project" in done.stdout
    assert not any(" rm " in line for line in world.changes)


def test_without_a_terminal_and_without_yes_nothing_is_removed(
    cloud: Script, world: World, made: dict[str, Any]
) -> None:
    done = cloud(*EVERYTHING)
    assert done.returncode == 2
    (line,) = done.stderr.splitlines()
    assert line.startswith("error: standard input is not a terminal; add --yes")
    assert kept(made, world)


HERE, THERE = "us-central1", "europe-west4"
MARK = {"created-by": "image-training-cloud-py"}


@pytest.mark.parametrize("flags", [("--yes",), ("--yes", "--with-bucket"), ("--dry-run", "--with-bucket")])
def test_another_region_never_loses_its_account_or_its_bucket(
    cloud: Script, world: World, made: dict[str, Any], flags: tuple[str, ...]
) -> None:
    before = world.changes
    done = cloud("down", "--region", THERE, *flags)
    assert done.returncode == 2
    assert (world.things, world.changes) == (made, before)
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"error: `up` created nothing in {THERE}, and region {HERE} uses {ACCOUNT}")
    command = shlex.split(line.partition(f"to remove the resources of {HERE}: ")[2])
    assert command[:3] == ["python", "cloud.py", "down"]
    # The command works as pasted, and asks first.
    pasted = cloud(*command[2:], "--yes")
    assert pasted.returncode == 0, pasted.stderr
    assert world.things["accounts"] == {}


@pytest.mark.parametrize("has_mark", [True, False])
def test_a_region_that_has_only_a_repository_left_keeps_its_account(
    cloud: Script, world: World, made: dict[str, Any], has_mark: bool
) -> None:
    state = world.read()
    del state["buckets"][BUCKET]
    state["repositories"][REPOSITORY]["labels"] = MARK if has_mark else {}
    world.file.write_text(json.dumps(state))
    before = world.things
    done = cloud(*EVERYTHING, "--yes", "--region", THERE)
    assert (done.returncode, world.things) == (2, before)
    assert f"region {HERE} uses {ACCOUNT}" in done.stderr


def test_of_two_regions_the_first_loses_what_is_only_its_own_and_the_last_everything(
    cloud: Script, world: World, made: dict[str, Any]
) -> None:
    world.add("repositories", f"my-project/{THERE}/image-training", labels=MARK)
    first = cloud(*EVERYTHING, "--yes", "--region", THERE)
    assert first.returncode == 0, first.stderr
    assert world.things == made
    kept_account, kept_bucket = [line for line in first.stdout.splitlines() if f"region {HERE}" in line]
    assert kept_account.startswith(f"service account {ACCOUNT} and its roles are kept, since region {HERE} uses ")
    assert kept_bucket.startswith(f"{BUCKET} is kept, since it is in region {HERE}")
    last = cloud(*shlex.split(kept_bucket.partition("remove it there: ")[2])[2:], "--yes")
    assert last.returncode == 0, last.stderr
    assert not any(world.things[kind] for kind in ("buckets", "repositories", "accounts"))


def test_a_repository_of_another_program_in_another_region_does_not_keep_the_account(
    cloud: Script, world: World, made: dict[str, Any]
) -> None:
    world.add("repositories", f"my-project/{THERE}/image-training", labels={"team": "vision"})
    world.add("repositories", f"my-project/{THERE}/production", labels=MARK)
    assert cloud("down", "--yes").returncode == 0
    assert world.things["accounts"] == {}
    assert len(world.things["repositories"]) == 2


@pytest.mark.parametrize(
    "more",
    [
        {"GCLOUD_FAILS": "repositories list"},
        {"GCLOUD_REGION_DOWN": THERE},
        {"GCLOUD_SAYS": "repositories list", "GCLOUD_TEXT": "{}"},
        {"GCLOUD_SAYS": "repositories list", "GCLOUD_TEXT": "[1]"},
        {"GCLOUD_SAYS": "repositories list", "GCLOUD_TEXT": '[{"name": "image-training"}]'},
    ],
)
def test_a_list_of_the_regions_that_fails_is_not_taken_for_none(
    cloud: Script, world: World, made: dict[str, Any], more: dict[str, str]
) -> None:
    world.add("repositories", f"my-project/{THERE}/image-training", labels=MARK)
    before = world.things
    done = cloud(*EVERYTHING, "--yes", **more)
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert "repositories list" in line or "gcloud shows" in line
    assert kept(before, world)


@pytest.mark.parametrize("typed", ["no\n", "\n", "y\n", "yes please\n", "\x04"])
def test_any_other_answer_than_yes_removes_nothing(
    terminal: Script, world: World, made: dict[str, Any], typed: str
) -> None:
    done = terminal(*EVERYTHING, typed=typed)
    assert done.returncode == 1
    assert done.stderr == "error: not confirmed; nothing was removed\n"
    assert kept(made, world)


def test_a_dry_run_removes_nothing(cloud: Script, world: World, made: dict[str, Any]) -> None:
    before = world.changes
    done = cloud(*EVERYTHING, "--dry-run")
    assert done.returncode == 0, done.stderr
    assert (world.things, world.changes) == (made, before)
    assert f"gcloud storage rm --recursive {BUCKET}" in done.stdout.splitlines()


@pytest.mark.parametrize(
    ("fails", "number"),
    [
        ("remove-iam-policy-binding", 0),
        ("service-accounts delete", 2),
        ("repositories delete", 3),
        ("storage rm", 4),
        ("the bucket itself", 4),
    ],
)
def test_a_partial_failure_is_one_and_the_next_run_removes_the_rest(
    cloud: Script, world: World, made: dict[str, Any], fails: str, number: int
) -> None:
    failed = cloud(*EVERYTHING, "--yes", GCLOUD_FAILS=fails)
    assert failed.returncode == 1
    (line,) = failed.stderr.splitlines()
    assert line.startswith("error: cannot remove ")
    assert line.endswith(f"; {number} of 5 were removed; run the command again to remove the others")
    again = cloud(*EVERYTHING, "--yes")
    assert again.returncode == 0, again.stderr
    assert not any(content for kind, content in world.things.items() if kind not in ("images", "policies"))
    assert ACCOUNT not in str(world.things["policies"].get("project my-project"))


@pytest.mark.parametrize("fails", ["service-accounts describe", "repositories describe", "get-iam-policy", "projects"])
def test_what_cannot_be_read_is_not_taken_for_missing(
    cloud: Script, world: World, made: dict[str, Any], fails: str
) -> None:
    failed = cloud(*EVERYTHING, "--yes", GCLOUD_FAILS=fails)
    assert failed.returncode == 1
    assert "PERMISSION_DENIED" in failed.stderr
    assert kept(made, world)


def test_the_word_not_found_alone_does_not_count_as_missing(
    repository: Any, world: World, made: dict[str, Any], variables: dict[str, str], tmp_path: Any
) -> None:
    broken = tmp_path / "broken" / "gcloud"
    broken.parent.mkdir()
    broken.write_text("#!/bin/sh\necho 'gcloud: python3 not found, the file does not exist' >&2\nexit 127\n")
    broken.chmod(0o755)
    path = {"PATH": f"{broken.parent}:{variables['PATH']}"}
    words = [*EVERYTHING, "--yes", "--project", "my-project"]
    done = call(main, words, cwd=repository, environment=variables | path, program="cloud.py")
    assert done.returncode == 1
    assert "python3 not found" in done.stderr
    assert kept(made, world)


def test_yes_at_a_terminal_removes_what_up_made_and_a_second_run_nothing(
    terminal: Script, cloud: Script, world: World, made: dict[str, Any]
) -> None:
    done = terminal("down", typed="yes\n")
    assert done.returncode == 0, done.stderr
    listed, question, *_ = done.stdout.partition("Remove these 5, for good?")
    assert question
    assert listed.splitlines() == [
        "To remove from my-project:",
        f"  role roles/aiplatform.user of {ACCOUNT} on my-project",
        f"  role roles/logging.logWriter of {ACCOUNT} on my-project",
        f"  role roles/storage.objectUser of {ACCOUNT} on {BUCKET}",
        f"  service account {ACCOUNT}",
        "  repository us-central1-docker.pkg.dev/my-project/image-training with its container images",
        f"{BUCKET} is kept; --with-bucket removes it and its contents",
    ]
    assert world.things["buckets"] == made["buckets"]
    assert not any(world.things[kind] for kind in ("repositories", "accounts"))
    assert "bucket" not in str(list(world.things["policies"]))
    assert cloud(*EVERYTHING, "--yes").returncode == 0
    assert world.things["buckets"] == {}
    before = world.changes
    last = cloud(*EVERYTHING, "--yes")
    assert (last.returncode, world.changes) == (0, before)
    assert last.stdout.startswith("Nothing to remove from my-project.\n")


def test_only_the_roles_of_the_account_are_removed(cloud: Script, world: World, made: dict[str, Any]) -> None:
    ours, conditional = f"serviceAccount:{ACCOUNT}", {"title": "until June", "expression": "true"}
    others = [
        {"role": "roles/aiplatform.user", "members": ["user:me@x.com", f"serviceAccount:{PRODUCTION}"]},
        {"role": "roles/owner", "members": ["user:me@x.com"]},
        {"role": "roles/logging.logWriter", "members": [ours], "condition": conditional},
    ]
    added = [
        {"role": "roles/aiplatform.user", "members": [*others[0]["members"], ours]},
        others[1],
        {"role": "roles/logging.logWriter", "members": [ours]},
        others[2],
    ]
    world.add_policy("project my-project", added)
    done = cloud("down", "--yes")
    assert done.returncode == 0, done.stderr
    gone = f"deleted:{ours}?uid=1"
    assert world.things["policies"]["project my-project"] == [*others[:2], others[2] | {"members": [gone]}]


def test_a_role_with_a_condition_is_another_role(
    cloud: Script, world: World, made: dict[str, Any], build_folder: Any
) -> None:
    binding = made["policies"]["project my-project"][0] | {"condition": {"title": "until June", "expression": "true"}}
    world.add_policy("project my-project", [binding])
    done = cloud("down", "--dry-run")
    assert done.returncode == 0, done.stderr
    assert "on my-project" not in done.stdout
    assert cloud("up").returncode == 0
    policy = world.things["policies"]["project my-project"]
    assert policy[0] == binding
    assert [each["role"] for each in policy[1:]] == ["roles/aiplatform.user", "roles/logging.logWriter"]


def test_what_an_earlier_version_made_is_removed_after_the_shown_commands(
    cloud: Script, world: World, made: dict[str, Any], variables: dict[str, str], build_folder: Any
) -> None:
    world.add("buckets", BUCKET, **made["buckets"][BUCKET] | {"labels": {"team": "vision"}})
    world.add("repositories", REPOSITORY, labels={})
    world.add("accounts", ACCOUNT, description="")
    before = world.things
    first = cloud(*EVERYTHING, "--yes")
    assert (first.returncode, world.things) == (0, before)
    commands = [line.partition("mark it: ")[2] for line in first.stdout.splitlines() if "mark it: " in line]
    assert len(commands) == 3
    noted = cloud("up")
    assert all(command in noted.stdout for command in commands)
    assert world.things["buckets"] == before["buckets"]
    for command in commands:
        subprocess.run(shlex.split(command), env=variables, check=True)
    assert world.things["buckets"][BUCKET]["labels"]["team"] == "vision"
    assert cloud(*EVERYTHING, "--yes").returncode == 0
    assert not any(world.things[kind] for kind in ("buckets", "repositories", "accounts"))
