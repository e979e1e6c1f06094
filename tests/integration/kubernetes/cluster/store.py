"""The objects of the fake cluster, with their versions and the history of changes.

Every object that is written, by the client or by the fake's own controllers, is held
against the schemas of a real version, where an unknown field is an error.
"""

from __future__ import annotations

import asyncio
import copy
import functools
import itertools
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, NamedTuple

import jsonschema
import referencing
from kubernetes_validate.utils import schema_contents

if TYPE_CHECKING:
    from collections.abc import Mapping

KUBERNETES_VERSION = "1.37"

JsonObject = dict[str, Any]


class Key(NamedTuple):
    kind: str
    namespace: str
    name: str


class Change(NamedTuple):
    version: int
    type: str
    object: JsonObject


class RefusedError(Exception):
    """A request that the API server refuses, as its `Status` says it."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": message,
            "reason": reason,
            "code": code,
        }


class Store:
    """Used on one event loop."""

    def __init__(self) -> None:
        self.objects: dict[Key, JsonObject] = {}
        self.changes: list[Change] = []
        self.version = 1
        self.forgotten = 0
        self.changed = asyncio.Event()
        self._names = itertools.count(1)

    def create(self, item: JsonObject) -> JsonObject:
        key = key_of(item)
        if key in self.objects:
            plural = f"{key.kind.lower()}s"
            message = f'{plural} "{key.name}" already exists'
            raise RefusedError(409, "AlreadyExists", message)
        made = copy.deepcopy(item)
        made["metadata"]["uid"] = str(uuid.uuid4())
        made["metadata"]["creationTimestamp"] = timestamp()
        return self._write("ADDED", made)

    def update(self, item: JsonObject) -> JsonObject:
        return self._write("MODIFIED", copy.deepcopy(item))

    def remove(self, item: JsonObject) -> None:
        removed = self.objects.pop(key_of(item), None)
        if removed is not None:
            self._record("DELETED", copy.deepcopy(removed))

    def mark_for_deletion(self, item: JsonObject) -> None:
        if "deletionTimestamp" not in item["metadata"]:
            marked = copy.deepcopy(item)
            marked["metadata"]["deletionTimestamp"] = timestamp()
            self.update(marked)

    def find(self, kind: str, namespace: str, name: str) -> JsonObject:
        found = self.objects.get(Key(kind, namespace, name))
        if found is None:
            message = f'{kind.lower()}s "{name}" not found'
            raise RefusedError(404, "NotFound", message)
        return found

    def of_kind(self, kind: str) -> list[JsonObject]:
        return [item for key, item in self.objects.items() if key.kind == kind]

    def owned_by(self, owner: JsonObject, kind: str) -> list[JsonObject]:
        uid = owner["metadata"]["uid"]
        return [item for item in self.of_kind(kind) if uid in owner_ids(item)]

    def record_event(
        self, about: JsonObject, kind: str, reason: str, message: str
    ) -> None:
        """Add an `Event`, as `kubectl describe` shows them."""
        metadata = about["metadata"]
        self.create(
            {
                "apiVersion": "v1",
                "kind": "Event",
                "metadata": {
                    "name": f"{metadata['name']}.{next(self._names):x}",
                    "namespace": metadata["namespace"],
                },
                "involvedObject": {
                    "apiVersion": about["apiVersion"],
                    "kind": about["kind"],
                    "name": metadata["name"],
                    "namespace": metadata["namespace"],
                    "uid": metadata["uid"],
                },
                "type": kind,
                "reason": reason,
                "message": message,
                "count": 1,
                "lastTimestamp": timestamp(),
            }
        )

    def forget_history(self) -> None:
        """Answer 410 to whoever asks for changes that were before now."""
        self.changes.clear()
        self.version += 1
        self.forgotten = self.version
        self.wake()

    def wake(self) -> None:
        """Let everybody look again who waits for a change."""
        woken, self.changed = self.changed, asyncio.Event()
        woken.set()

    def _write(self, kind: str, item: JsonObject) -> JsonObject:
        self.version += 1
        item["metadata"]["resourceVersion"] = str(self.version)
        validate(item)
        self.objects[key_of(item)] = item
        self._record(kind, item)
        return item

    def _record(self, kind: str, item: JsonObject) -> None:
        if kind == "DELETED":
            self.version += 1
            item["metadata"]["resourceVersion"] = str(self.version)
        self.changes.append(Change(self.version, kind, item))
        self.wake()


def validate(item: JsonObject) -> None:
    """Refuse an object that the schemas of `KUBERNETES_VERSION` do not know."""
    try:
        _validator(item["kind"], item["apiVersion"]).validate(item)
    except jsonschema.ValidationError as exc:
        message = f"{item['kind']} is invalid: {exc.json_path}: {exc.message}"
        raise RefusedError(422, "Invalid", message) from None


def key_of(item: JsonObject) -> Key:
    metadata = item["metadata"]
    return Key(item["kind"], metadata["namespace"], metadata["name"])


def owner_ids(item: JsonObject) -> set[str]:
    return {owner["uid"] for owner in item["metadata"].get("ownerReferences", ())}


def selected(item: JsonObject, selector: str, *, labels: bool) -> bool:
    """Tell whether an object has what `a=b,c=d` asks for."""
    for term in filter(None, selector.split(",")):
        name, equals, wanted = term.partition("=")
        if not equals:
            raise RefusedError(400, "BadRequest", f"unable to parse: {term}")
        if labels:
            value: Any = item["metadata"].get("labels", {}).get(name)
        else:
            value = _field(item, name)
        if value != wanted:
            return False
    return True


def timestamp(seconds: float | None = None) -> str:
    now = datetime.now(UTC) if seconds is None else datetime.fromtimestamp(seconds, UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%SZ")


def _field(item: Mapping[str, Any], path: str) -> Any:
    value: Any = item
    for name in path.split("."):
        value = value.get(name, {})
    return value


@functools.cache
def _validator(kind: str, api_version: str) -> jsonschema.Draft202012Validator:
    group, slash, version = api_version.rpartition("/")
    suffix = f"{group.partition('.')[0]}-{version}" if slash else version
    folder = f"kubernetes-json-schema/v{KUBERNETES_VERSION}.0-local-strict"
    schema = schema_contents(f"{folder}/{kind.lower()}-{suffix}.json", "")
    definitions = schema_contents(f"{folder}/_definitions.json", "")
    registry: referencing.Registry[Any] = referencing.Registry()
    for contents in (schema, definitions):
        registry = referencing.Resource.from_contents(contents) @ registry
    return jsonschema.Draft202012Validator(schema, registry=registry)
