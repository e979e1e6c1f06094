"""`openenv push`: publish an environment as a Space or in a registry."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openenv.cli._console import CommandFailed, ExitCode, WrongUse, output, say
from openenv.cli._pairs import parse_pairs

if TYPE_CHECKING:
    from huggingface_hub import HfApi

    from openenv.cli.manifest import Manifest


@dataclass(frozen=True)
class Publication:
    """How a Space is to be."""

    private: bool = False
    create_pr: bool = False
    hardware: str | None = None
    ignored: list[str] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)


def push(  # noqa: PLR0913 - one parameter an option of the command
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the environment.")
    ] = Path(),
    *,
    repo_id: Annotated[
        str | None,
        typer.Option("--repo-id", "-r", help="NAME or OWNER/NAME; default: you/NAME."),
    ] = None,
    registry: Annotated[
        str | None,
        typer.Option(help="Push an image there instead, such as docker.io/me."),
    ] = None,
    base_image: Annotated[
        str | None, typer.Option("--base-image", "-b", help="Build on this image.")
    ] = None,
    interface: Annotated[
        bool | None,
        typer.Option(
            "--interface/--no-interface", help="Web page; default: for a Space."
        ),
    ] = None,
    private: Annotated[
        bool, typer.Option("--private", help="Only you see the Space.")
    ] = False,
    create_pr: Annotated[
        bool, typer.Option("--create-pr", help="Open a pull request instead.")
    ] = False,
    exclude: Annotated[
        Path | None, typer.Option(help="File of glob patterns that stay here.")
    ] = None,
    delete: Annotated[
        list[str] | None,
        typer.Option(help="Glob of the Space's files to delete; '*': all not sent."),
    ] = None,
    hardware: Annotated[
        str | None, typer.Option("--hardware", "-H", help="Such as t4-medium.")
    ] = None,
    count: Annotated[
        int, typer.Option("--count", "-n", min=1, help="So many Spaces, NAME-1 and on.")
    ] = 1,
    env_var: Annotated[
        list[str] | None,
        typer.Option("--env-var", "-e", help="Public variable KEY=VALUE."),
    ] = None,
    secret: Annotated[
        list[str] | None, typer.Option(help="Secret KEY=VALUE; never shown.")
    ] = None,
    wheel: Annotated[
        Path | None,
        typer.Option(help="Wheel of openenv to send; default: the running."),
    ] = None,
) -> None:
    """Publish an environment as a Space of the Hugging Face Hub, or in a registry.

    Examples: openenv push my_env --private --secret TOKEN=abc;
    openenv push my_env --registry docker.io/me
    """
    variables = parse_pairs("--env-var", env_var or ())
    secrets = parse_pairs("--secret", secret or (), secret=True)
    _refuse_combinations(registry, count, variables | secrets, create_pr=create_pr)
    if registry and repo_id:
        raise WrongUse("--repo-id names a Space: not with --registry")
    if not folder.is_dir():  # 2, upstream: push
        message = f"{folder} is no folder"
        raise WrongUse(message)
    manifest = _require_good(folder)
    if registry is not None:
        _push_image(folder, manifest, registry, base_image, wheel, web=bool(interface))
        return
    from openenv.cli._space import IGNORED, read_ignore_file  # noqa: PLC0415 - re

    declared = {key: str(value) for key, value in manifest.variables.items()}
    publication = Publication(
        private=private,
        create_pr=create_pr,
        hardware=hardware,
        ignored=[*IGNORED, *(read_ignore_file(exclude) if exclude else ())],
        deleted=delete or [],
        variables={} if create_pr else declared | variables,
        secrets=secrets,
    )
    web = interface is not False
    _push_spaces(folder, manifest, publication, repo_id, count, base_image, wheel, web)


def _refuse_combinations(
    registry: str | None, count: int, values: dict[str, str], *, create_pr: bool
) -> None:
    if count > 1 and (registry or create_pr):
        raise CommandFailed("--count makes Spaces: not with --registry or --create-pr")
    if values and (registry or create_pr):
        message = "--env-var and --secret are a Space's: not with --registry or a PR"
        raise WrongUse(message)


def _require_good(folder: Path) -> Manifest:
    """Return the manifest of a package whose files are all right."""
    from openenv.cli._staging import require_manifest  # noqa: PLC0415 - PyYAML
    from openenv.cli.validation.checks import (  # noqa: PLC0415 - as above
        Finding,
        Verdict,
        run_checks,
    )
    from openenv.cli.validation.package import (  # noqa: PLC0415 - as above
        PACKAGE_CHECKS,
        Package,
    )

    manifest = require_manifest(folder)
    faults: list[str] = []

    def listen(what: str | Finding) -> None:
        if isinstance(what, Finding) and what.verdict is Verdict.FAIL:
            faults.append(f"{what.check}: {what.why}")

    run_checks(PACKAGE_CHECKS, Package(folder.resolve()), listen)
    if faults:
        raise WrongUse("the package is not ready: " + "; ".join(faults))
    return manifest


def _push_image(
    folder: Path,
    manifest: Manifest,
    registry: str,
    base_image: str | None,
    wheel: Path | None,
    web: bool,
) -> None:
    from openenv.cli.commands.build import build_folder  # noqa: PLC0415 - subprocess

    build_folder(
        folder,
        f"{registry.rstrip('/')}/{manifest.name}".lower(),
        {"ENABLE_WEB_INTERFACE": "true"} if web else {},
        base_image=base_image,
        wheel=wheel,
        push=True,
    )


def _push_spaces(  # noqa: PLR0913, PLR0917 - as above
    folder: Path,
    manifest: Manifest,
    publication: Publication,
    repo_id: str | None,
    count: int,
    base_image: str | None,
    wheel: Path | None,
    web: bool,
) -> None:
    from openenv.cli._space import connect, full_repo_id, prepare  # noqa: PLC0415
    from openenv.cli._staging import (  # noqa: PLC0415 - PyYAML
        base_image_of,
        choose_wheel,
        staged,
    )

    chosen = choose_wheel(wheel)
    api, user = connect()
    whole = full_repo_id(repo_id, user, manifest.name)
    names = [whole] if count == 1 else [f"{whole}-{i + 1}" for i in range(count)]
    with staged(folder, chosen) as copy:
        prepare(copy, manifest, base_image or base_image_of(chosen), web=web)
        for number, name in enumerate(names, 1):
            if count > 1:
                output.print(f"[{number}/{count}]", markup=False, end=" ")
            _publish(api, copy, name, publication)
    if count > 1:
        output.print(f"All {count} instances deployed")


def _publish(api: HfApi, copy: Path, name: str, publication: Publication) -> None:
    from openenv.cli._space import told  # noqa: PLC0415 - as above

    if not publication.create_pr:
        with told(f"making the Space {name}"):
            api.create_repo(
                repo_id=name,
                repo_type="space",
                space_sdk="docker",
                private=publication.private,
                exist_ok=True,
                space_hardware=publication.hardware,  # type: ignore[arg-type]
            )
    # Before the files: the Space's first start has them.
    for key, value in publication.variables.items():
        with told(f"setting the variable {key}"):
            api.add_space_variable(repo_id=name, key=key, value=value)
    for key, value in publication.secrets.items():
        with told(f"setting the secret {key}"):
            api.add_space_secret(repo_id=name, key=key, value=value)
    url = _upload(api, copy, name, publication)
    output.print(url, markup=False, soft_wrap=True)


def _upload(api: HfApi, copy: Path, name: str, publication: Publication) -> str:
    from openenv.cli._space import told  # noqa: PLC0415 - as above

    advice = (
        "nothing of the Space was changed; run the same command again: large files "
        "that have arrived are not sent a second time"
    )
    try:
        with told("the upload"):
            commit = api.upload_folder(
                folder_path=copy,
                repo_id=name,
                repo_type="space",
                create_pr=publication.create_pr,
                ignore_patterns=publication.ignored,
                delete_patterns=publication.deleted or None,
                commit_message="Publish with openenv push",
            )
    except CommandFailed as error:
        message = f"{error}; {advice}"
        raise CommandFailed(message) from None
    except KeyboardInterrupt:
        say(f"The upload was interrupted; {advice}")
        raise typer.Exit(ExitCode.INTERRUPTED) from None
    return str(commit.pr_url or f"{api.endpoint}/spaces/{name}")
