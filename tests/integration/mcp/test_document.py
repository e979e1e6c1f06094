"""docs/mcp.md as it stands: its environment is served, its client calls it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.integration.first_light.documents import Document, run, serve

if TYPE_CHECKING:
    from pathlib import Path

PAGE = Document("docs/mcp.md")


def test_the_pages_environment_answers_the_pages_client(tmp_path: Path):
    [(name, text)] = PAGE.files.items()
    [program] = PAGE.programs
    (tmp_path / name).write_text(text)
    with serve("calculator:app", tmp_path) as server:
        url = f"http://127.0.0.1:{server.wait_for_port()}"
        printed = run(program, tmp_path, url)

    assert "['add']\n3\n7 None\n" == printed
