"""What the fake registry has: how each image's process is started."""

from __future__ import annotations

import sys
import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

GRID_WORLD = "registry.test/grid-world:1"
EXITS = "registry.test/exits:1"
GREEDY = "registry.test/greedy:1"
SILENT = "registry.test/silent:1"
STUBBORN = "registry.test/stubborn:1"
ECHO = "registry.test/echo:1"
ENDS = "registry.test/ends:1"
MISSING = "registry.test/missing:1"


def _grid_world(host: str, port: int) -> list[str]:
    module = ("-m", "grid_world_env.server.app")
    return [sys.executable, *module, "--host", host, "--port", str(port)]


def _script(source: str) -> Callable[[str, int], list[str]]:
    code = textwrap.dedent(source)
    return lambda host, port: [sys.executable, "-c", code, host, str(port)]


_HTTP_SERVER = """
import http.server, signal, sys
{first}

class Echo(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()

    def do_POST(self):
        self.do_GET()
        self.wfile.write(self.rfile.read(int(self.headers["Content-Length"])))

address = (sys.argv[1], int(sys.argv[2]))
http.server.ThreadingHTTPServer(address, Echo).serve_forever()
"""

IMAGES: dict[str, Callable[[str, int], list[str]]] = {
    GRID_WORLD: _grid_world,
    EXITS: _script("raise SystemExit('cannot find the maze')"),
    ENDS: _script(""),
    GREEDY: _script("""
        import time
        kept = []
        while True:
            kept.append(b"x" * 2**20)
            time.sleep(0.001)
    """),
    SILENT: _script("import time; time.sleep(3600)"),
    STUBBORN: _script(_HTTP_SERVER.format(first="signal.signal(15, signal.SIG_IGN)")),
    ECHO: _script(_HTTP_SERVER.format(first="")),
}
