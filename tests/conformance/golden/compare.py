"""Equality of two answers, apart from what may differ between two right servers."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import replace
from typing import Any

from tests.conformance.golden.transcripts import Answer

SESSION_ID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
PYDANTIC_VERSION = re.compile(r"errors\.pydantic\.dev/[\d.]+/")
LONG_CHARACTERS = 20_000
HEAD_CHARACTERS = 160
TAIL_CHARACTERS = 120
TITLE = re.compile(r"<title>.*?</title>")
SECONDS = re.compile(r"\b(\d+\.\d+|N) s\b")
MEASURED_ENDINGS = (" s", " s (step takes 3 s)")
SCHEMA_KEYS = {"action", "observation", "state"}  # members of GET /schema
LATER_PATHS = (
    "/list_environments",
    "/{env_name}/splits",
    "/{env_name}/tasks",
    "/{env_name}/num_tasks",
    "/{env_name}/task",
    "/{env_name}/task_range",
)
LATER_MODELS = (
    "HTTPValidationError",  # an application without /reset has it from these routes
    "GetTaskRangeRequest",
    "GetTaskRequest",
    "ListTasksRequest",
    "NumTasksRequest",
    "ValidationError",
)


def comparable(answer: Answer) -> Answer:
    """The answer in the form in which two are compared with `==`.

    JSON keeps the order of its keys and the difference of 2, 2.0 and true; the
    version inside pydantic's documentation links is dropped, and so are the ids of
    sessions. Of a web page that the framework makes, the title counts; of a schema, all
    but the prose.
    """
    received = answer.received
    if isinstance(received, list):
        return replace(answer, received=[canonical(item) for item in received])
    return replace(answer, received=canonical(received))


def canonical(item: Any) -> Any:
    """One message or body in comparable form."""
    if isinstance(item, dict) and "component_schemas" in item:
        return without_prose(without_later_routes(item))
    if not isinstance(item, str):
        return item
    if item.endswith(MEASURED_ENDINGS) or item.startswith("/health"):
        return SECONDS.sub("N s", item)
    try:
        item = SESSION_ID.sub("<id>", item)
        value = json.loads(PYDANTIC_VERSION.sub("pydantic/", item))
        is_schema = isinstance(value, dict) and value.keys() >= SCHEMA_KEYS
        return json.dumps(without_prose(value) if is_schema else value)
    except json.JSONDecodeError:
        title = TITLE.search(item)
        return title.group() if title else item


def without_prose(value: Any) -> Any:
    """A schema without its descriptions: each implementation writes its own."""
    if isinstance(value, dict):
        prose = {key for key, text in value.items() if is_prose(key, text)}
        return {k: without_prose(v) for k, v in value.items() if k not in prose}
    if isinstance(value, list):
        return [without_prose(member) for member in value]
    return value


def is_prose(key: str, value: Any) -> bool:
    """Whether a member of a schema is its description, not a field of that name."""
    return key == "description" and isinstance(value, str)


def without_later_routes(digest: dict[str, Any]) -> dict[str, Any]:
    """An OpenAPI digest without the routes and models of `out_of_scope.toml`."""
    schemas = [name for name in digest["component_schemas"] if name not in LATER_MODELS]
    kept = digest | {"component_schemas": schemas}
    for part in ("paths", "operations"):
        routes = digest[part].items()
        kept[part] = {path: it for path, it in routes if path not in LATER_PATHS}
    return kept


def like(recorded: Answer, seen: Answer) -> Answer:
    """Cut `seen` down to what was recorded, long texts to their digest."""
    kept = {
        name: None if getattr(recorded, name) is None else getattr(seen, name)
        for name in Answer.__slots__
    }
    if isinstance(recorded.received, list):
        kept["received"] = [shorten(item) for item in seen.received]
    else:
        kept["received"] = shorten(seen.received)
    return Answer(**kept)


def shorten(item: Any) -> Any:
    """Long texts were recorded as their length, digest, head and tail."""
    if not isinstance(item, str) or len(item) < LONG_CHARACTERS:
        return item
    return {
        "text_len": len(item),
        "sha256": hashlib.sha256(item.encode()).hexdigest(),
        "head": item[:HEAD_CHARACTERS],
        "tail": item[-TAIL_CHARACTERS:],
    }
