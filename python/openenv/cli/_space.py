"""Publish to the Hub: what a Space needs of a folder, and the calls of its API."""

from __future__ import annotations

import re
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from openenv.cli._console import CommandFailed, WrongUse
from openenv.cli._dockerfile import replace_base, set_variable

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from huggingface_hub import HfApi

    from openenv.cli.manifest import Manifest

IGNORED: Final = (".*", "**/.*", "__pycache__", "*.pyc", "build/", "*.egg-info")
_FRONT_MATTER: Final = re.compile(r"\A---\r?\n(.*?)^---\r?\n", re.DOTALL | re.MULTILINE)
_UNAUTHORIZED: Final = 401
# What reading another server's answer raises: no JSON, or JSON of another shape.
_NO_ANSWER: Final = (AttributeError, LookupError, TypeError, ValueError)


def prepare(copy: Path, manifest: Manifest, base: str | None, *, web: bool) -> None:
    """Make a staged folder what a Space takes.

    Its Dockerfile is in the root, and its README has the front matter of a Space.
    """
    inner, outer = copy / "server" / "Dockerfile", copy / "Dockerfile"
    if inner.is_file():
        inner.replace(outer)
    text = outer.read_text(encoding="utf-8")
    if base is not None:
        text = replace_base(text, base)
    if web:
        text = set_variable(text, "ENABLE_WEB_INTERFACE", "true")
    outer.write_text(text, encoding="utf-8", newline="\n")
    page = copy / "README.md"
    page.write_text(
        _with_front_matter(page.read_text(encoding="utf-8"), manifest, web=web),
        encoding="utf-8",
        newline="\n",
    )


def read_ignore_file(path: Path) -> list[str]:
    """Read glob patterns, one a line; `#` begins a comment.

    Raises:
        WrongUse: there is no such file, or a pattern is a negation.
    """
    if not path.is_file():
        message = f"--exclude {path}: there is no such file"
        raise WrongUse(message)
    lines = [line.strip() for line in path.read_text(encoding="utf-8").splitlines()]
    patterns = [line for line in lines if line and not line.startswith("#")]
    for pattern in patterns:
        if pattern.startswith("!"):
            message = f"--exclude {path}: a negation cannot be used: {pattern}"
            raise WrongUse(message)
    return patterns


def connect() -> tuple[HfApi, str]:
    """Return the Hub's API and the user's name there.

    Raises:
        CommandFailed: huggingface_hub is missing, or the Hub does not answer.
        WrongUse: nobody is logged in.
    """
    try:
        # Here, because it is an extra, and slow to import.
        from huggingface_hub import HfApi, get_token  # noqa: PLC0415
    except ModuleNotFoundError as error:
        message = f"this needs the package {error.name!r}: pip install huggingface_hub"
        raise CommandFailed(message) from None
    advice = "run `hf auth login`, or set HF_TOKEN"
    if get_token() is None:
        message = f"nobody is logged in at the Hub: {advice}"
        raise WrongUse(message)
    api = HfApi(library_name="openenv")
    with told("asking the Hub who you are"):
        return api, str(api.whoami()["name"])


@contextmanager
def told(what: str) -> Iterator[None]:
    """Turn what the Hub or the network refuses into a sentence.

    Raises:
        CommandFailed: the call failed.
    """
    from huggingface_hub import constants, get_session  # noqa: PLC0415 - as `connect`
    from huggingface_hub.errors import (  # noqa: PLC0415 - as `connect`
        HfHubHTTPError,
        HFValidationError,
    )

    # Which HTTP library it is differs from one huggingface_hub to the next.
    library = sys.modules[type(get_session()).__module__.partition(".")[0]]

    try:
        yield
    except HfHubHTTPError as error:
        code = error.response.status_code
        reason = error.server_message or error.response.reason_phrase
        hint = "; is the token still valid?" if code == _UNAUTHORIZED else ""
        message = f"{what} failed: {reason} (HTTP {code}){hint}"
        raise CommandFailed(message) from None
    except HFValidationError as error:
        message = f"{what} failed: {error}"
        raise CommandFailed(message) from None
    except _NO_ANSWER as error:  # before OSError: requests' JSON errors are both
        url, found = constants.ENDPOINT, " ".join(str(error).split())
        message = (
            f"{what} failed: {url} gave no answer that can be read "
            f"({type(error).__name__}: {found}); is this the Hub?"
        )
        raise CommandFailed(message) from None
    except (library.HTTPError, OSError, RuntimeError) as error:
        message = f"{what} failed: {error}"
        raise CommandFailed(message) from None


def as_pairs(given: dict[str, str]) -> list[dict[str, str]]:
    """Return variables as the Hub's API has them."""
    return [{"key": key, "value": value} for key, value in given.items()]


def full_repo_id(given: str | None, user: str, name: str) -> str:
    """Return `owner/name` of what the user wrote, or of the manifest's name.

    Raises:
        WrongUse: it has more than one slash.
    """
    repo_id = given or name
    owner, slash, rest = repo_id.rpartition("/")
    if "/" in owner or not rest or (slash and not owner):
        message = f"--repo-id must be NAME or OWNER/NAME, got {repo_id!r}"
        raise WrongUse(message)
    return f"{owner or user}/{rest}"


def _with_front_matter(text: str, manifest: Manifest, *, web: bool) -> str:
    wanted: dict[str, Any] = {
        "title": manifest.name.replace("_", " ").title(),
        "emoji": "🎮",
        "colorFrom": "blue",
        "colorTo": "indigo",
        "sdk": "docker",
        "pinned": "false",
        "app_port": manifest.port,
    }
    if web:
        wanted["base_path"] = "/web"
    found = _FRONT_MATTER.match(text)
    if found is None:
        front = "".join(f"{key}: {value}\n" for key, value in wanted.items())
        return f"---\n{front}tags:\n  - openenv\n---\n\n{text}"
    front = found.group(1)
    keys = set(re.findall(r"^(\w+):", front, re.MULTILINE))
    # What the author wrote stays, but a Space of another kind or port cannot run.
    front = re.sub(r"^sdk:.*$", "sdk: docker", front, flags=re.MULTILINE)
    front = re.sub(
        r"^app_port:.*$", f"app_port: {manifest.port}", front, flags=re.MULTILINE
    )
    more = "".join(
        f"{key}: {value}\n" for key, value in wanted.items() if key not in keys
    )
    return f"---\n{front}{more}---\n{text[found.end() :]}"
