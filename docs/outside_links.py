"""A hook of mkdocs: links that leave `docs/` are shown as paths of the repository."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mkdocs.structure.pages import Page

LINK = re.compile(r"\[([^\]]+)\]\(\.\./([^)#]+)(?:#[^)]*)?\)")


def on_page_markdown(markdown: str, *, page: Page, **_: object) -> str:
    """Replace `[text](../path)` by the text and, where it does not say it, the path."""
    if "/" in page.file.src_uri:
        return markdown
    return LINK.sub(_as_path, markdown)


def _as_path(link: re.Match[str]) -> str:
    text, path = link.groups()
    return f"`{path}`" if text in path else f"{text} (`{path}`)"
