"""Random values that fit a JSON schema: the policy of those who have none.

`compile_sampler` turns a schema into a function of a random generator once, so that a
step costs microseconds. Optional members are drawn half of the time; `metadata`, which
each action has, is left out. What cannot be drawn honestly (a `pattern`, a schema that
allows anything as the whole action) is refused when compiling, not while playing.
"""

from __future__ import annotations

import math
import random
import string
from typing import TYPE_CHECKING, Any, cast

from openenv.rollout.errors import InvalidRollout

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from openenv.rollout.policy import Policy

    Sampler = Callable[[random.Random, int], object]

# Ranges for what a schema leaves open.
_SPAN = 100
_HALF = 0.5
_MAX_EXTRA_ITEMS = 3
_MAX_EXTRA_CHARACTERS = 12
# A schema that contains itself is cut here: below, optional members stay out.
_MAX_DEPTH = 6
_HARD_DEPTH = 64
_IGNORED_MEMBERS = frozenset({"metadata"})
_ALPHABET = string.ascii_letters + string.digits + " "

Schema = dict[str, Any]


def compile_sampler(schema: Mapping[str, object]) -> Callable[[random.Random], Any]:
    """Make a function that draws values valid under the schema.

    Args:
        schema: a JSON schema (draft 2020-12 as pydantic writes it), `$defs` inside.

    Raises:
        InvalidRollout: the schema has a part that cannot be drawn.
    """
    sampler = _Compiler(dict(schema)).compile(dict(schema))
    return lambda rng: sampler(rng, 0)


def random_policy(schema: Mapping[str, object]) -> Policy:
    """Make the policy that draws each action from the action's JSON schema.

    Raises:
        InvalidRollout: the schema cannot be drawn, or is not that of an object.
    """
    sampler = compile_sampler(schema)
    # One draw tells what kind of value it is; the generator is nobody else's.
    if not isinstance(sampler(random.Random(0)), dict):  # noqa: S311 - not a secret
        message = "the environment's action schema is not an object; give --policy"
        raise InvalidRollout(message)
    return lambda _observation, episode: sampler(episode.rng)


class _Compiler:
    """Compile one document; references are compiled once, also those to themselves."""

    def __init__(self, document: Schema) -> None:
        self._document = document
        self._references: dict[str, Sampler | None] = {}

    def compile(self, schema: object) -> Sampler:
        if schema is True or schema == {}:
            return _sample_scalar
        if not isinstance(schema, dict):
            message = f"no value fits the schema {schema!r}"
            raise InvalidRollout(message)
        for keyword, method in _BY_KEYWORD.items():
            if keyword in schema:
                return method(self, cast("Schema", schema))
        return self._compile_type(cast("Schema", schema))

    def _compile_type(self, schema: Schema) -> Sampler:
        kind = schema.get("type", _implied_type(schema))
        if isinstance(kind, list):
            return _one_of([self.compile({**schema, "type": each}) for each in kind])
        method = _BY_TYPE.get(str(kind))
        if method is None:
            message = f"cannot draw a value of type {kind!r}; give --policy"
            raise InvalidRollout(message)
        return method(self, schema)

    def compile_reference(self, schema: Schema) -> Sampler:
        reference = schema["$ref"]
        if reference not in self._references:
            self._references[reference] = None  # being compiled: seen by inner uses
            self._references[reference] = self.compile(self._look_up(reference))

        def sample(rng: random.Random, depth: int) -> object:
            if depth > _HARD_DEPTH:
                message = f"schema {reference} contains itself without an end"
                raise InvalidRollout(message)
            # Compiled by now: sampling starts after the whole document is.
            return cast("Sampler", self._references[reference])(rng, depth + 1)

        return sample

    def compile_enum(self, schema: Schema) -> Sampler:
        values = list(schema["enum"])
        if not values:
            message = "no value fits an empty enum"
            raise InvalidRollout(message)
        return lambda rng, _depth: rng.choice(values)

    def compile_const(self, schema: Schema) -> Sampler:
        value = schema["const"]
        return lambda _rng, _depth: value

    def compile_any_of(self, schema: Schema) -> Sampler:
        options = schema.get("anyOf") or schema.get("oneOf") or []
        base = {k: v for k, v in schema.items() if k not in ("anyOf", "oneOf")}
        kept = {k: v for k, v in base.items() if k in ("properties", "required")}
        merged = [{**kept, **each} if kept else each for each in options]
        # Null last: it is what ends a schema that contains itself.
        merged.sort(key=lambda each: each == {"type": "null"})
        return _one_of([self.compile(each) for each in merged])

    def compile_all_of(self, schema: Schema) -> Sampler:
        merged: Schema = {k: v for k, v in schema.items() if k != "allOf"}
        for part in schema["allOf"]:
            whole = self._look_up(part["$ref"]) if "$ref" in part else part
            properties = {**merged.get("properties", {}), **whole.get("properties", {})}
            required = [*merged.get("required", []), *whole.get("required", [])]
            merged = {**merged, **whole}
            if properties:
                merged |= {"properties": properties, "required": required}
        return self.compile(merged)

    def compile_object(self, schema: Schema) -> Sampler:
        required = set(schema.get("required", ()))
        members = [
            (name, self.compile(part), name in required)
            for name, part in schema.get("properties", {}).items()
            if name in required or name not in _IGNORED_MEMBERS
        ]

        def sample(rng: random.Random, depth: int) -> object:
            deep = depth >= _MAX_DEPTH
            return {
                name: draw(rng, depth + 1)
                for name, draw, needed in members
                if needed or (not deep and rng.random() < _HALF)
            }

        return sample

    def compile_array(self, schema: Schema) -> Sampler:
        prefix = [self.compile(part) for part in schema.get("prefixItems", ())]
        least = max(schema.get("minItems", 0), len(prefix))
        most = max(schema.get("maxItems", least + _MAX_EXTRA_ITEMS), least)
        rest = self.compile(schema.get("items", True)) if most > len(prefix) else None
        unique = bool(schema.get("uniqueItems"))

        def sample(rng: random.Random, depth: int) -> object:
            count = least if depth >= _MAX_DEPTH else rng.randint(least, most)
            items = [draw(rng, depth + 1) for draw in prefix]
            if rest is not None:
                items += [rest(rng, depth + 1) for _ in range(count - len(prefix))]
            return _distinct(items, rest, rng, depth) if unique else items

        return sample

    def compile_integer(self, schema: Schema) -> Sampler:
        low, high = _bounds(schema, 1)
        step = int(schema.get("multipleOf", 1)) or 1
        first, last = math.ceil(low / step), math.floor(high / step)
        if first > last:
            message = f"no integer fits the schema {schema!r}"
            raise InvalidRollout(message)
        return lambda rng, _depth: rng.randint(first, last) * step

    def compile_number(self, schema: Schema) -> Sampler:
        if "multipleOf" in schema:
            step = schema["multipleOf"]
            low, high = _bounds(schema, step)
            first, last = math.ceil(low / step), math.floor(high / step)
            return lambda rng, _depth: rng.randint(first, max(first, last)) * step
        low, high = _bounds(schema, 0)
        return lambda rng, _depth: rng.uniform(low, high)

    def compile_boolean(self, schema: Schema) -> Sampler:
        del schema  # a boolean has no options
        return lambda rng, _depth: rng.random() < _HALF

    def compile_null(self, schema: Schema) -> Sampler:
        del schema  # null has no options
        return lambda _rng, _depth: None

    def compile_string(self, schema: Schema) -> Sampler:
        if "pattern" in schema:
            pattern = schema["pattern"]
            message = f"cannot draw a string for pattern {pattern!r}; give --policy"
            raise InvalidRollout(message)
        drawn = _FORMATS.get(schema.get("format", ""))
        if drawn is not None:
            return drawn
        least = schema.get("minLength", 0)
        most = max(schema.get("maxLength", least + _MAX_EXTRA_CHARACTERS), least)
        return lambda rng, _depth: "".join(
            rng.choices(_ALPHABET, k=rng.randint(least, min(most, least + _SPAN)))
        )

    def _look_up(self, reference: str) -> Any:  # noqa: ANN401 - any part of a schema
        found: object = self._document
        for part in reference.removeprefix("#").strip("/").split("/"):
            name = part.replace("~1", "/").replace("~0", "~")
            if not (isinstance(found, dict) and name in found):
                message = f"the schema has no {reference}"
                raise InvalidRollout(message)
            found = found[name]
        return found


def _implied_type(schema: Schema) -> str | None:
    if "properties" in schema:
        return "object"
    return "array" if "items" in schema or "prefixItems" in schema else None


def _bounds(schema: Schema, gap: float) -> tuple[float, float]:
    """Tell the closed range; `gap` moves an exclusive bound, 0 means the least bit."""
    low, high = schema.get("minimum"), schema.get("maximum")
    if "exclusiveMinimum" in schema:
        bound = schema["exclusiveMinimum"]
        low = bound + gap if gap else math.nextafter(bound, math.inf)
    if "exclusiveMaximum" in schema:
        bound = schema["exclusiveMaximum"]
        high = bound - gap if gap else math.nextafter(bound, -math.inf)
    if low is None:
        low = -_SPAN if high is None else high - _SPAN
    return low, low + _SPAN if high is None else high


def _one_of(options: list[Sampler]) -> Sampler:
    if not options:
        message = "no value fits a choice without options"
        raise InvalidRollout(message)

    def sample(rng: random.Random, depth: int) -> object:
        chosen = options[-1] if depth >= _MAX_DEPTH else rng.choice(options)
        return chosen(rng, depth)

    return sample


def _distinct(
    items: list[object], draw: Sampler | None, rng: random.Random, depth: int
) -> list[object]:
    kept: list[object] = []
    for item in items:
        value, tries = item, 0
        while value in kept and draw is not None and tries < _SPAN:
            value, tries = draw(rng, depth + 1), tries + 1
        if value not in kept:
            kept.append(value)
    return kept


def _sample_scalar(rng: random.Random, depth: int) -> object:
    del depth  # a scalar has no inside
    return rng.choice((None, True, False, rng.randint(-_SPAN, _SPAN), rng.random()))


def _sample_date_time(rng: random.Random, depth: int) -> object:
    return f"{_sample_date(rng, depth)}T{_sample_time(rng, depth)}"


def _sample_date(rng: random.Random, depth: int) -> object:
    del depth  # a date has no inside
    year, month, day = rng.randint(1970, 2099), rng.randint(1, 12), rng.randint(1, 28)
    return f"{year:04}-{month:02}-{day:02}"


def _sample_time(rng: random.Random, depth: int) -> object:
    del depth  # a time has no inside
    hour, minute, second = rng.randrange(24), rng.randrange(60), rng.randrange(60)
    return f"{hour:02}:{minute:02}:{second:02}Z"


def _sample_uuid(rng: random.Random, depth: int) -> object:
    del depth  # a UUID has no inside
    digits = f"{rng.getrandbits(128):032x}"
    return "-".join(
        (digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:])
    )


_FORMATS: dict[str, Sampler] = {
    "date-time": _sample_date_time,
    "date": _sample_date,
    "time": _sample_time,
    "uuid": _sample_uuid,
}

# The first keyword that a schema has decides; the others only refine it.
_BY_KEYWORD = {
    "const": _Compiler.compile_const,
    "enum": _Compiler.compile_enum,
    "$ref": _Compiler.compile_reference,
    "allOf": _Compiler.compile_all_of,
    "anyOf": _Compiler.compile_any_of,
    "oneOf": _Compiler.compile_any_of,
}

_BY_TYPE = {
    "array": _Compiler.compile_array,
    "boolean": _Compiler.compile_boolean,
    "integer": _Compiler.compile_integer,
    "null": _Compiler.compile_null,
    "number": _Compiler.compile_number,
    "object": _Compiler.compile_object,
    "string": _Compiler.compile_string,
}
