"""`openenv build`: make a container image of an environment."""

from __future__ import annotations

import re
import time
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from openenv.cli._console import CommandFailed, WrongUse, output, status
from openenv.cli._pairs import parse_pairs

if TYPE_CHECKING:
    from openenv.cli._docker import BuildOptions
    from openenv.cli.manifest import Manifest

DOCKERFILES = ("server/Dockerfile", "Dockerfile")
BASE_ARGUMENT = "BASE_IMAGE"
_PART = r"[a-z0-9]+(?:(?:\.|__?|-+)[a-z0-9]+)*"
_HOST = r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:]+\])(?::[0-9]+)?"
# github.com/distribution/reference: [host/]path[:tag]
_REFERENCE = re.compile(
    rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*(?::\w[\w.-]{{0,127}})?", re.ASCII
)


def build(  # noqa: PLR0913 - one parameter an option of the command
    folder: Annotated[
        Path, typer.Argument(metavar="DIR", help="Folder of the environment.")
    ] = Path(),
    *,
    tag: Annotated[
        str | None,
        typer.Option("--tag", "-t", help="Name of the image; default openenv-NAME."),
    ] = None,
    platform: Annotated[
        str | None, typer.Option(help="Such as linux/arm64; needs buildx for others.")
    ] = None,
    build_arg: Annotated[
        list[str] | None, typer.Option(help="KEY=VALUE for the Dockerfile's ARG.")
    ] = None,
    base_image: Annotated[
        str | None, typer.Option("--base-image", "-b", help="Build on this image.")
    ] = None,
    dockerfile: Annotated[
        Path | None, typer.Option("--dockerfile", "-f", help="Another Dockerfile.")
    ] = None,
    wheel: Annotated[
        Path | None,
        typer.Option(help="Wheel of openenv to lay into dist/; default: the running."),
    ] = None,
    no_cache: Annotated[
        bool, typer.Option("--no-cache", help="Build every layer anew.")
    ] = False,
    push: Annotated[
        bool, typer.Option("--push", help="Push it to the registry of its tag.")
    ] = False,
) -> None:
    """Make a container image of an environment.

    Uses docker buildx where it is there, else the engine's classic builder. The wheel
    that the running openenv was installed from is laid into dist/ for the Dockerfile.

    Examples: openenv build my_env --tag me/my_env:1;
    openenv build my_env --base-image python:3.12-slim
    """
    if tag is not None and not tag.strip():
        raise WrongUse("--tag is empty")
    build_folder(
        folder,
        tag or default_tag(folder),
        parse_pairs("--build-arg", build_arg or ()),
        base_image=base_image,
        wheel=wheel,
        dockerfile=dockerfile,
        platform=platform,
        no_cache=no_cache,
        push=push,
    )


def build_folder(  # noqa: PLR0913 - what the command was given
    folder: Path,
    tag: str,
    arguments: dict[str, str],
    *,
    base_image: str | None = None,
    wheel: Path | None = None,
    dockerfile: Path | None = None,
    platform: str | None = None,
    no_cache: bool = False,
    push: bool = False,
) -> None:
    """Build the image of a folder, push it where asked, and tell what came out."""
    from openenv.cli._docker import BuildOptions  # noqa: PLC0415 - subprocess
    from openenv.cli._staging import (  # noqa: PLC0415 - PyYAML, only where needed
        base_image_of,
        choose_wheel,
        require_manifest,
        staged,
    )

    manifest = require_manifest(folder)
    _check_tag(tag)
    chosen = choose_wheel(wheel)
    with staged(folder, chosen) as copy:
        file = _lay_dockerfile(copy, dockerfile)
        base = base_image or arguments.get(BASE_ARGUMENT) or base_image_of(chosen)
        if base:
            asked = base_image is not None
            arguments = arguments | _put_base(copy / file, base, asked=asked)
        options = BuildOptions(
            folder=copy,
            dockerfile=file,
            tag=tag,
            labels=image_labels(manifest),
            arguments=arguments,
            platform=platform,
            no_cache=no_cache,
            push=push,
        )
        began = time.monotonic()
        size = _build(options)
    seconds = time.monotonic() - began
    told = f"{tag}: {size}built in {seconds:.0f} s{', pushed' if push else ''}"
    output.print(told, markup=False, soft_wrap=True)


def _check_tag(tag: str) -> None:
    """Refuse what no engine takes: distribution/reference, its grammar.

    Raises:
        WrongUse: it is none.
    """
    if not _REFERENCE.fullmatch(tag):
        message = (
            f"invalid tag {tag!r}: an image is NAME or NAME:TAG, its name in lower case"
        )
        raise WrongUse(message)


def default_tag(folder: Path) -> str:
    """Name the image of a folder as upstream does."""
    return f"openenv-{folder.resolve().name.removesuffix('_env')}".lower()


def image_labels(manifest: Manifest) -> dict[str, str]:
    """Tell what an image holds; `openenv.port` is what providers look for."""
    labels = {
        "openenv.name": manifest.name,
        "openenv.port": str(manifest.port),
        "openenv.app": manifest.app,
        "org.opencontainers.image.title": manifest.name,
    }
    if manifest.version:
        labels["org.opencontainers.image.version"] = manifest.version
    if manifest.description:
        labels["org.opencontainers.image.description"] = manifest.description
    return labels


def _build(options: BuildOptions) -> str:
    from openenv.cli._docker import (  # noqa: PLC0415 - as above
        Engine,
        build_by_buildx,
        has_buildx,
    )

    several = "," in (options.platform or "")
    if several and not options.push:
        message = "several platforms make no image that an engine holds: add --push"
        raise WrongUse(message)
    spinner = status.status("build") if status.is_terminal else nullcontext()
    with spinner as shown:

        def told(line: str) -> None:
            if shown is not None:
                shown.update(line[: max(20, status.width - 4)].replace("[", r"\["))

        if has_buildx():
            build_by_buildx(options, told)
            return ""
        if several:
            raise CommandFailed("several platforms at once need docker buildx")
        engine = Engine()
        engine.build(options, told)
        if options.push:
            engine.push(options.tag, told)
        return f"{engine.size_mb(options.tag):.1f} MB, "


def _lay_dockerfile(copy: Path, named: Path | None) -> str:
    """Find the Dockerfile, and lay one from elsewhere into the staged folder."""
    if named is not None:
        if not named.is_file():
            message = f"{named} is no file"
            raise WrongUse(message)
        target = copy / ".openenv.Dockerfile"
        target.write_bytes(named.read_bytes())
        return target.name
    for name in DOCKERFILES:
        if (copy / name).is_file():
            return name
    raise CommandFailed("there is no server/Dockerfile and no Dockerfile")


def _put_base(dockerfile: Path, base: str, *, asked: bool) -> dict[str, str]:
    """Put the base image in: as the Dockerfile's argument, else into its first FROM."""
    from openenv.cli._dockerfile import Dockerfile, replace_base  # noqa: PLC0415

    text = dockerfile.read_text(encoding="utf-8")
    declared = [
        each.text.partition("=")[0] for each in Dockerfile.parse(text).of("ARG")
    ]
    if BASE_ARGUMENT in declared:
        return {BASE_ARGUMENT: base}
    if asked:
        dockerfile.write_text(replace_base(text, base), encoding="utf-8")
    return {}
