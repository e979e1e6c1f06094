"""The part of the Hub's HTTP API that publishing a Space needs, on a local socket."""

# ruff: noqa: ARG002 - every route is called alike

from __future__ import annotations

import base64
import json
import re
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

TOKEN = "hf_of_the_tests"


@dataclass
class Space:
    """What the Hub holds of one Space."""

    private: bool = False
    hardware: str | None = None
    files: dict[str, bytes] = field(default_factory=dict)
    variables: dict[str, str] = field(default_factory=dict)
    secrets: dict[str, str] = field(default_factory=dict)
    pull_requests: int = 0


class FakeHub:
    """Answers on `url`; `spaces` is what has been published."""

    def __init__(self):
        self.spaces = {}
        self.calls = []
        self.cut_next_commit = False
        self.refuses_commits = False
        self.page = None  # what every call is answered with, by no Hub
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), self._handler())
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever)
        self._thread.start()

    def stop(self):
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def answer(self, method, path, body):
        """Answer a call: (status, JSON)."""
        path, _, query = path.partition("?")
        for pattern, function in self.ROUTES:
            found = re.fullmatch(pattern, f"{method} {path}")
            if found and "/spaces/" in path and found.group(1) not in self.spaces:
                return 404, {"error": f"there is no Space {found.group(1)}"}
            if found:
                return function(self, *found.groups(), query=query, body=body)
        return 404, {"error": f"the fake has no {method} {path}"}

    def _who(self, *, query, body):
        return 200, {"name": "me", "type": "user", "orgs": [], "auth": {}}

    def _create(self, *, query, body):
        wanted = json.loads(body)
        owner = wanted.get("organization") or "me"
        if owner not in {"me", "team"}:
            return 403, {"error": f"you may not write to {owner}"}
        name = f"{owner}/{wanted['name']}"
        assert (wanted["type"], wanted["sdk"]) == ("space", "docker")
        if name in self.spaces:
            return 409, {"error": "there is one", "url": f"{self.url}/spaces/{name}"}
        private = bool(wanted.get("private")) or wanted.get("visibility") == "private"
        self.spaces[name] = Space(private=private, hardware=wanted.get("hardware"))
        return 200, {"url": f"{self.url}/spaces/{name}", "name": name, "id": name}

    def _variable(self, name, *, query, body):
        wanted = json.loads(body)
        self.spaces[name].variables[wanted["key"]] = wanted["value"]
        return 200, {wanted["key"]: {"value": wanted["value"]}}

    def _secret(self, name, *, query, body):
        wanted = json.loads(body)
        self.spaces[name].secrets[wanted["key"]] = wanted["value"]
        return 200, {}

    def _yaml(self, *, query, body):
        return 200, {"errors": [], "warnings": []}

    def _info(self, name, *, query, body):
        files = [{"rfilename": path} for path in self.spaces[name].files]
        return 200, {"id": name, "sha": "0" * 40, "siblings": files, "private": False}

    def _tree(self, name, *, query, body):
        files = self.spaces[name].files
        return 200, [
            {"type": "file", "path": path, "size": len(content), "oid": "0" * 40}
            for path, content in files.items()
        ]

    def _preupload(self, name, *, query, body):
        files = json.loads(body)["files"]
        told = {"uploadMode": "regular", "shouldIgnore": False}
        return 200, {"files": [{"path": each["path"], **told} for each in files]}

    def _commit(self, name, revision, *, query, body):
        if self.cut_next_commit:
            self.cut_next_commit = False
            return None
        if self.refuses_commits:
            return 403, {"error": "the quota is used up"}
        space = self.spaces[name]
        if revision != "main":
            space = Space()  # a pull request leaves the Space alone
        for line in body.decode().splitlines():
            entry = json.loads(line)
            value = entry["value"]
            if entry["key"] == "file":
                space.files[value["path"]] = base64.b64decode(value["content"])
            elif entry["key"] == "deletedFile":
                del space.files[value["path"]]
        return 200, self._committed(name)

    def _committed(self, name):
        url = f"{self.url}/spaces/{name}/commit/{'1' * 40}"
        return {"commitUrl": url, "commitOid": "1" * 40}

    def _open_discussion(self, name, *, query, body):
        assert json.loads(body)["pullRequest"]
        self.spaces[name].pull_requests += 1
        return 200, {"num": self.spaces[name].pull_requests}

    def _discussion(self, name, number, *, query, body):
        return 200, {
            "title": "Publish",
            "num": int(number),
            "author": {"name": "me"},
            "createdAt": "2026-01-01T00:00:00.000Z",
            "status": "draft",
            "repo": {"name": name, "type": "space"},
            "isPullRequest": True,
            "filesWithConflicts": [],
            "changes": {"base": "refs/heads/main"},
            "events": [],
        }

    def _change_discussion(self, name, number, *, query, body):
        return 200, {"newStatus": {"id": "0", "type": "status-change"}}

    def _duplicate(self, source, *, query, body):
        wanted = json.loads(body)
        name, original = wanted["repository"], self.spaces[source]
        self.spaces[name] = Space(
            private=bool(wanted.get("private")),
            hardware=wanted.get("hardware"),
            files=dict(original.files),
            variables={e["key"]: e["value"] for e in wanted.get("variables") or ()},
            secrets={e["key"]: e["value"] for e in wanted.get("secrets") or ()},
        )
        return 200, {"url": f"{self.url}/spaces/{name}"}

    ROUTES = (
        (r"GET /api/whoami-v2", _who),
        (r"POST /api/repos/create", _create),
        (r"POST /api/validate-yaml", _yaml),
        (r"POST /api/spaces/([^/]+/[^/]+)/variables", _variable),
        (r"POST /api/spaces/([^/]+/[^/]+)/secrets", _secret),
        (r"POST /api/spaces/([^/]+/[^/]+)/duplicate", _duplicate),
        (r"POST /api/spaces/([^/]+/[^/]+)/preupload/[^/]+", _preupload),
        (r"POST /api/spaces/([^/]+/[^/]+)/commit/([^/]+)", _commit),
        (r"POST /api/spaces/([^/]+/[^/]+)/discussions", _open_discussion),
        (r"GET /api/spaces/([^/]+/[^/]+)/discussions/(\d+)", _discussion),
        (
            r"POST /api/spaces/([^/]+/[^/]+)/discussions/(\d+)/status",
            _change_discussion,
        ),
        (r"GET /api/spaces/([^/]+/[^/]+)/tree/[^/]+", _tree),
        (r"GET /api/spaces/([^/]+/[^/]+)(?:/revision/[^/]+)?", _info),
    )

    def _handler(self):
        fake = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self):
                length = int(self.headers.get("Content-Length") or 0)
                body = self.rfile.read(length)
                fake.calls.append((self.command, self.path))
                if self.headers.get("Authorization") != f"Bearer {TOKEN}":
                    answer = (401, {"error": "Invalid credentials"})
                else:
                    answer = fake.answer(self.command, self.path, body)
                if answer is None:
                    self.close_connection = True
                    return
                status, content = answer
                text = json.dumps(content).encode()
                if fake.page is not None:
                    status, content, text = 200, {}, fake.page.encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(text)))
                if "error" in content:
                    self.send_header("X-Error-Message", content["error"])
                self.end_headers()
                self.wfile.write(text)

            do_GET = do_POST = do_PUT = do_DELETE = answer  # noqa: N815 - http.server

            def log_message(self, *arguments):
                """Say nothing: `calls` has them."""

        return Handler
