"""The account of the user's Google Cloud credentials, read from their files without any call."""

import configparser
import json
import os
from pathlib import Path
from typing import Any

_DEFAULT = "application_default_credentials.json"


def account_name() -> str:
    """Return the account that Google's libraries would use, as far as the files on this machine show it."""
    named = os.environ.get("GOOGLE_APPLICATION_CREDENTIALS", "")
    path = Path(named) if named else config_folder() / _DEFAULT
    try:
        content: Any = json.loads(path.read_text())
    except (OSError, ValueError):
        content = None
    if not isinstance(content, dict):
        return "the account of this machine" if not named else f"an unknown account ({path} cannot be read)"
    account = content.get("client_email") or content.get("account") or _gcloud_account()
    return str(account) if account else f"the account in {path}"


def config_folder() -> Path:
    """Return the folder of gcloud's configuration."""
    return Path(os.environ.get("CLOUDSDK_CONFIG") or Path.home() / ".config" / "gcloud")


def _gcloud_account() -> str:
    """Return the account of gcloud's active configuration; empty when there is none."""
    folder = config_folder()
    try:
        active = os.environ.get("CLOUDSDK_ACTIVE_CONFIG_NAME") or (folder / "active_config").read_text().strip()
        parser = configparser.ConfigParser(interpolation=None)
        parser.read_string((folder / "configurations" / f"config_{active}").read_text())
        return parser.get("core", "account", fallback="")
    except (OSError, ValueError, configparser.Error):
        return ""
