"""Commands of containers that behave badly, each in its own way."""

from __future__ import annotations

import sys
from pathlib import Path

PYTHON = str(Path(sys.base_prefix) / "bin/python3")


def python(code: str) -> list[str]:
    return [PYTHON, "-c", code]


def serving(port: int) -> list[str]:
    return python(
        f"from grid_world_env.server.app import main; main('0.0.0.0', {port})"
    )


EXITS = python("for line in range(60): print('line', line)\nraise SystemExit(7)")
HANGS = python("import time; time.sleep(600)")
IGNORES_SIGTERM = python(
    "import signal, threading\n"
    "from grid_world_env.server.app import app\n"
    "import uvicorn\n"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    "server = uvicorn.Server(uvicorn.Config(app, '0.0.0.0', 8000))\n"
    "thread = threading.Thread(target=server.run)\n"
    "thread.start(); thread.join()\n"
)
LISTENS_ELSEWHERE = python(
    "import socket, time\n"
    "listener = socket.create_server(('0.0.0.0', 9001))\n"
    "time.sleep(600)\n"
)
NEVER_ANSWERS = python(
    "import socket, time\n"
    "listener = socket.create_server(('0.0.0.0', 8000))\n"
    "time.sleep(600)\n"
)
HEALTH_WITHOUT_WEBSOCKET = python(
    "from http.server import BaseHTTPRequestHandler, HTTPServer\n"
    "class Handler(BaseHTTPRequestHandler):\n"
    "    def do_GET(self):\n"
    "        self.send_response(200 if self.path == '/health' else 404)\n"
    "        self.send_header('Content-Length', '0'); self.end_headers()\n"
    "HTTPServer(('0.0.0.0', 8000), Handler).serve_forever()\n"
)
# Takes a tenth of the start of a real server, for tests that start many.
LIGHT = python(
    "import asyncio, json, http, signal\n"
    "from websockets.asyncio.server import serve\n"
    "def health(connection, request):\n"
    "    if request.path == '/health':\n"
    "        return connection.respond(http.HTTPStatus.OK, '')\n"
    "async def session(connection):\n"
    "    async for text in connection:\n"
    "        if json.loads(text)['type'] == 'close':\n"
    "            return\n"
    "        data = {'observation': {}, 'reward': None, 'done': False}\n"
    "        await connection.send(json.dumps({'type': 'observation', 'data': data}))\n"
    "async def main():\n"
    "    server = await serve(session, '0.0.0.0', 8000, process_request=health)\n"
    "    loop = asyncio.get_running_loop()\n"
    "    loop.add_signal_handler(signal.SIGTERM, server.close)\n"
    "    await server.wait_closed()\n"
    "asyncio.run(main())\n"
)
