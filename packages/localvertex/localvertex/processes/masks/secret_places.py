"""Places with secrets of users and of the system, and the sockets through which a program leaves its mask.

docs/access.md has the table; a test compares the two.
"""

import fnmatch
import os
import pwd
import re
import stat
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from glob import glob
from pathlib import Path

HOME = {
    "keys and logins": (
        ".ssh .gnupg .pki .netrc .authinfo .authinfo.gpg .git-credentials .config/git/credentials .config/gh "
        ".config/hub .config/glab-cli .config/github-copilot .pypirc .npmrc .yarnrc.yml .cargo/credentials "
        ".cargo/credentials.toml .gem/credentials .m2/settings.xml .config/op .config/sops .config/age .env .secrets"
    ),
    "clouds": (
        ".config/gcloud .boto .gsutil .aws .azure .oci .aliyun .bluemix .s3cfg .config/rclone .config/doctl "
        ".config/hcloud .config/linode-cli .databrickscfg .snowsql .snowflake .config/snowflake .dbt .terraform.d "
        ".terraformrc .vault-token .fly .modal.toml .config/skypilot .sky .runpod"
    ),
    "containers": (
        ".docker .kube .minikube .helm .config/helm .config/containers .config/argocd .local/share/containers/cache"
    ),
    "models and experiments": (
        ".cache/huggingface/token .cache/huggingface/stored_tokens .huggingface .kaggle .config/kaggle .config/wandb "
        ".comet.config .neptune .clearml.conf clearml.conf .lightning .mlflow/credentials .ngc .openai .anthropic "
        ".claude .claude.json .codex .gemini .cursor .config/Cursor .config/openai .replicate .cohere .together"
    ),
    "databases and mail": (
        ".pgpass .my.cnf .mylogin.cnf .config/mongodb .msmtprc .config/msmtp .mbsyncrc .fetchmailrc .thunderbird .mutt "
        ".config/neomutt"
    ),
    "keyrings and password stores": (
        ".local/share/keyrings .gnome2/keyrings .local/share/kwalletd .kde/share/apps/kwallet .password-store "
        ".local/share/pass .config/keepassxc .local/share/gnupg .config/Bitwarden .config/1Password .config/KeePass "
        ".electrum .bitcoin .ethereum .config/solana"
    ),
    "browsers and editors": (
        ".mozilla .config/google-chrome .config/google-chrome-beta .config/google-chrome-unstable .config/chromium "
        ".config/BraveSoftware .config/microsoft-edge .config/opera .config/vivaldi .librewolf snap/firefox "
        "snap/chromium .var/app .config/Code .config/Slack .config/discord .config/Signal .vscode-server/data "
        ".config/code-server .local/share/code-server .local/share/jupyter/runtime .jupyter/jupyter_server_config.json "
        ".jupyter/jupyter_notebook_config.json .ipython/profile_default/security"
    ),
    "histories": (
        ".bash_history .zsh_history .zhistory .histfile .history .zsh_sessions .bash_sessions .local/share/fish "
        ".ksh_history .sh_history .python_history .ipython/profile_default/history.sqlite .node_repl_history "
        ".psql_history .mysql_history .sqlite_history .rediscli_history .mongosh .dbshell .lesshst .viminfo "
        ".local/share/nvim/shada .local/state/nvim/shada .wget-hsts .local/share/recently-used.xbel"
    ),
    "sessions": ".Xauthority .ICEauthority .screen .tmux-sockets .krb5cc",
}
"""Files and folders of a home folder, by kind."""

VARIABLES = (
    "GOOGLE_APPLICATION_CREDENTIALS GOOGLE_GHA_CREDS_PATH CLOUDSDK_CONFIG BOTO_CONFIG AWS_SHARED_CREDENTIALS_FILE "
    "AWS_CONFIG_FILE AWS_WEB_IDENTITY_TOKEN_FILE AZURE_CONFIG_DIR KUBECONFIG DOCKER_CONFIG REGISTRY_AUTH_FILE NETRC "
    "GNUPGHOME PASSWORD_STORE_DIR PGPASSFILE HF_TOKEN_PATH KAGGLE_CONFIG_DIR GH_CONFIG_DIR NPM_CONFIG_USERCONFIG "
    "HISTFILE PYTHON_HISTORY MYSQL_HISTFILE PSQL_HISTORY XAUTHORITY KRB5CCNAME KRB5_KTNAME"
)
"""Variables that name other places of these files."""

SOCKETS = (
    "SSH_AUTH_SOCK GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS DBUS_SYSTEM_BUS_ADDRESS DOCKER_HOST CONTAINER_HOST TMUX "
    "VSCODE_IPC_HOOK_CLI VSCODE_GIT_IPC_HANDLE GIT_ASKPASS_SOCK XDG_RUNTIME_DIR"
)
"""Variables that name sockets of agents and services: who reaches them acts as the user, or as root."""

SYSTEM = (
    "/run/user /run/docker /run/docker.sock /run/containerd /run/podman /run/crio /run/k3s /run/dbus /run/libvirt "
    "/run/snapd.socket /run/snapd-snap.socket /run/incus /run/lxd.socket /run/screen /run/secrets /run/credentials "
    "/run/systemd/private /run/systemd/io.systemd.ManagedOOM /run/systemd/journal/socket /var/lib/incus/unix.socket "
    "/var/lib/lxd/unix.socket /var/snap/lxd/common/lxd/unix.socket /var/lib/docker /var/lib/kubelet "
    "/tmp/tmux-* /tmp/screen* /tmp/ssh-* /tmp/gpg-* /tmp/keyring-* /tmp/krb5cc* /tmp/dbus-* /tmp/vscode-*.sock "
    "/tmp/.X11-unix /tmp/.ICE-unix"
)
"""Sockets and secrets outside of home folders."""

_BASES = {".config/": "XDG_CONFIG_HOME", ".local/share/": "XDG_DATA_HOME", ".cache/": "XDG_CACHE_HOME"}
"""Folders of a home folder that a variable may move."""

_NAMES = tuple(name for text in HOME.values() for name in text.split())

_SHARED = re.compile("|".join(fnmatch.translate(each) for each in SYSTEM.split() if "*" in each))
"""Patterns of paths in /tmp."""

_STARTS = tuple(each.partition("*")[0].removeprefix("/tmp/") for each in SYSTEM.split() if "*" in each)  # noqa: S108
"""Beginnings of these names: of thousands, nearly all are looked at no further."""

_HUGGING_FACE = ("token", "stored_tokens")

_MAX_ENTRIES, _MAX_CLOSED = 5_000, 100


def of_users(env: Mapping[str, str]) -> Iterator[str]:
    """Yield where secrets of the user may be; of all users, if this is root."""
    for home in _homes(env):
        with suppress(OSError):
            there = {*os.listdir(home)}
            yield from (os.path.join(home, name) for name in _NAMES if name.partition("/")[0] in there)
    for base, variable in _BASES.items():
        if moved := env.get(variable):
            yield from (os.path.join(moved, name.removeprefix(base)) for name in _NAMES if name.startswith(base))
    if moved := env.get("HF_HOME"):
        yield from (os.path.join(moved, name) for name in _HUGGING_FACE)
    yield from _named(VARIABLES, env)


def of_system(env: Mapping[str, str]) -> Iterator[str]:
    """Yield where sockets may be through which a program acts outside, and what only root may read."""
    yield from (each for each in SYSTEM.split() if "*" not in each)
    with suppress(OSError):
        names = (name for name in os.listdir("/tmp") if name.startswith(_STARTS))  # noqa: S108
        yield from (path for name in names if _SHARED.match(path := f"/tmp/{name}"))  # noqa: S108
    yield from _named(SOCKETS, env)
    if os.geteuid() == 0:
        yield from only_roots("/etc")


@cache
def only_roots(*folders: str) -> tuple[str, ...]:
    """Return what ordinary users cannot read in these folders, a closed folder as a whole; of many, their folders.

    Root reads it as the owner, even without any capability. Read once, because it takes a moment.
    """
    return tuple(sorted(each for folder in folders for each in _merged({*_closed(folder)})))


def _merged(found: set[str]) -> set[str]:
    """Return as few places as can be covered one by one: of many, the folders that contain them."""
    while len(found) > _MAX_CLOSED:
        found = {os.path.dirname(each) if each.count(os.sep) > 1 else each for each in found}
    return {each for each in found if not any(str(parent) in found for parent in Path(each).parents)}


def _closed(folder: str) -> Iterator[str]:
    """Yield what ordinary users cannot read in a folder; the nearest first, and of a large folder no more."""
    waiting, num_seen = deque([folder]), 0
    while waiting and num_seen < _MAX_ENTRIES:
        with suppress(OSError), os.scandir(waiting.popleft()) as entries:
            for entry in entries:
                num_seen += 1
                mode = entry.stat(follow_symlinks=False).st_mode
                if stat.S_ISDIR(mode) and mode & stat.S_IXOTH:
                    waiting.append(entry.path)
                elif (stat.S_ISDIR(mode) or stat.S_ISREG(mode)) and not mode & stat.S_IROTH:
                    yield entry.path


def _homes(env: Mapping[str, str]) -> set[str]:
    homes = {env.get("HOME", "")} | ({"/root", *glob("/home/*")} if os.geteuid() == 0 else set())
    with suppress(KeyError):
        homes.add(pwd.getpwuid(os.getuid()).pw_dir)
    return {each for each in homes if each.strip(os.sep)}


def _named(names: str, env: Mapping[str, str]) -> Iterator[str]:
    """Yield the paths in the values of variables: `/a:/b`, `unix:path=/a,guid=1`, `unix:///a`, `/a,1,0`, `FILE:/a`."""
    for name in names.split():
        for part in env.get(name, "").replace(",", ":").replace("=", ":").split(":"):
            if part.startswith(os.sep):
                yield os.path.normpath(part.replace("//", "/"))
