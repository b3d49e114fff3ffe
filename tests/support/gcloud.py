"""A fake gcloud for PATH: it records every call, stores what was created and describes it.

The environment variable GCLOUD_STATE names the file of its state, GCLOUD_FAILS a command that it refuses.
"""

import json
import os
import pathlib
import sys

DIGEST = "sha256:" + "d" * 64
state_file = pathlib.Path(os.environ["GCLOUD_STATE"])
state = json.loads(state_file.read_text()) if state_file.exists() else {"calls": [], "made": {}, "policies": {}}
words = [word for word in sys.argv[1:] if not word.startswith("--")]
flags = dict(word[2:].partition("=")[::2] for word in sys.argv[1:] if word.startswith("--"))
VERBS = ("create", "describe", "delete", "get-iam-policy", "add-iam-policy-binding", "remove-iam-policy-binding")
state["calls"].append(sys.argv[1:])
answer, code = None, 0
verb = next((word for word in words if word in VERBS), "")
thing = words[-1].partition("@")[0]
if os.environ.get("GCLOUD_FAILS", "nothing") in " ".join(words):
    print("ERROR: (gcloud) PERMISSION_DENIED: you may not do that", file=sys.stderr)
    code = 1
elif words[:2] == ["services", "list"]:
    answer = [{"config": {"name": name}} for name in state["made"].get("services", [])]
elif words[:2] == ["services", "enable"]:
    state["made"]["services"] = words[2:]
elif words[:2] == ["builds", "submit"]:
    state["made"][f"images {flags['substitutions'].removeprefix('_IMAGE=')}"] = {"image_summary": {"digest": DIGEST}}
elif words[:2] == ["storage", "rm"]:
    del state["made"][f"buckets {thing}"]
elif verb == "get-iam-policy":
    answer = {"bindings": state["policies"].get(" ".join(words[:-2]) + thing, [])}
elif verb == "add-iam-policy-binding":
    held = state["policies"].setdefault(" ".join(words[:-2]) + thing, [])
    held.append({"role": flags["role"], "members": [flags["member"]]})
elif verb == "remove-iam-policy-binding":
    held = state["policies"][" ".join(words[:-2]) + thing]
    held[:] = [each for each in held if each["role"] != flags["role"]]
elif verb == "create":
    state["made"][f"{words[-3]} {thing}"] = {"name": thing, "location": flags.get("location", "").upper()}
elif verb == "delete":
    del state["made"][f"{words[-3]} {thing}"]
elif verb == "describe" and (answer := state["made"].get(f"{words[-3]} {thing}")) is None:
    print(f"ERROR: (gcloud) NOT_FOUND: {thing} is not there", file=sys.stderr)
    code = 1
state_file.write_text(json.dumps(state))
if answer is not None:
    print(json.dumps(answer))
sys.exit(code)
