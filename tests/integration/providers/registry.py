"""A registry of one tiny image (OCI distribution spec), for pulls by the real engine.

The engine takes registries on 127.0.0.0/8 without TLS.
"""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import http.server
import io
import json
import tarfile
import threading

MANIFEST_TYPE = "application/vnd.docker.distribution.manifest.v2+json"
CONFIG_TYPE = "application/vnd.docker.container.image.v1+json"
LAYER_TYPE = "application/vnd.docker.image.rootfs.diff.tar.gzip"


@contextlib.contextmanager
def serving_registry():
    """Serve until the block ends; gives the `Registry`."""
    server = Registry(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, name="registry")
    thread.start()
    try:
        yield server
    finally:
        server.released.set()
        server.shutdown()
        thread.join()
        server.server_close()


class Registry(http.server.ThreadingHTTPServer):
    """Counts pulls; while `held`, the layer is kept back until released."""

    daemon_threads = True

    def __init__(self, *arguments) -> None:
        super().__init__(*arguments)
        self.image = f"127.0.0.1:{self.server_port}/tiny/echo:v1"
        self.manifests_asked = 0
        self.layer_asked, self.released = threading.Event(), threading.Event()
        self.released.set()
        layer = _layer()
        config = json.dumps(
            {
                "architecture": "amd64",
                "os": "linux",
                "config": {"Cmd": ["/no/such/program"]},
                "rootfs": {"type": "layers", "diff_ids": [_digest(layer)]},
            }
        ).encode()
        packed = gzip.compress(layer, mtime=0)
        self.layer_digest = _digest(packed)
        self.blobs = {_digest(config): config, self.layer_digest: packed}
        self.manifest = json.dumps(
            {
                "schemaVersion": 2,
                "mediaType": MANIFEST_TYPE,
                "config": _described(CONFIG_TYPE, config),
                "layers": [_described(LAYER_TYPE, packed)],
            }
        ).encode()


class _Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: Registry

    def do_GET(self):
        path = self.path
        if path == "/v2/":
            self._answer(b"{}", "application/json")
        elif path.startswith("/v2/tiny/echo/manifests/"):
            if path.endswith("/v1"):
                self.server.manifests_asked += self.command == "HEAD"
            self._answer(self.server.manifest, MANIFEST_TYPE)
        elif (digest := path.rpartition("/")[2]) in self.server.blobs:
            if digest == self.server.layer_digest:
                self.server.layer_asked.set()
                self.server.released.wait(30)
            self._answer(self.server.blobs[digest], "application/octet-stream")
        else:
            self._answer(b'{"errors":[{"code":"MANIFEST_UNKNOWN"}]}', "", 404)

    do_HEAD = do_GET  # noqa: N815 - the name that the base class calls

    def _answer(self, body, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Docker-Content-Digest", _digest(body))
        self.end_headers()
        if self.command == "GET":
            with contextlib.suppress(OSError):  # the engine gave the pull up
                self.wfile.write(body)

    def log_message(self, *arguments):
        pass


def _layer():
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        content = b"hello"
        entry = tarfile.TarInfo("hello")
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def _described(kind, content):
    return {"mediaType": kind, "size": len(content), "digest": _digest(content)}


def _digest(content):
    return f"sha256:{hashlib.sha256(content).hexdigest()}"
