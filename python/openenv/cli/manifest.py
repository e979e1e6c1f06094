"""The manifest `openenv.yaml`: a typed model, and a reader that tells places.

The keys are upstream's. A wrong value is an error with its line and column; a key that
nobody knows is a warning, since a newer openenv may know it. Inside `validation` it is
an error, as upstream has it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from enum import StrEnum
from importlib.resources import files
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Final, Literal, Self

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

MANIFEST_NAME: Final = "openenv.yaml"
SCHEMA_NAME: Final = "openenv.schema.json"
DEFAULT_APP: Final = "server.app:app"
DEFAULT_PORT: Final = 8000
_MAX_PORT: Final = 65535
# Far above any manifest; a few aliases of aliases stand for billions of values.
_MAX_VALUES: Final = 10_000
_MAX_DEPTH: Final = 50
_TOO_LARGE: Final = "the manifest is too large, nested too deeply or contains itself"

Place = tuple[int, int]
"""Line and column, both from 1."""

_Positive = Annotated[float, Field(gt=0)]
_Share = Annotated[float, Field(ge=0)]


class _Open(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="allow", strict=True)


class _Closed(BaseModel):
    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", strict=True)


class RewardDeclaration(_Closed):
    """What rewards the environment promises."""

    range: list[float] = Field(default=[0.0, 1.0], min_length=2, max_length=2)
    oracle_tolerance: _Share = 0.0
    floor_margin: _Share = Field(description="distance of a random policy's reward")
    variance_tolerance: _Share | None = None

    @model_validator(mode="after")
    def _increases(self) -> Self:
        if self.range[0] >= self.range[1]:
            message = f"range must increase, got {self.range}"
            raise ValueError(message)
        return self


class ResourceDeclaration(_Closed):
    """What one episode may use."""

    cpu: _Positive
    memory_mb: _Positive
    disk_mb: _Positive
    episode_timeout_s: _Positive
    gpus: int = Field(default=0, ge=0)
    gpu_types: list[str] = []


class VerifierBinding(_Closed):
    """What decides that an episode was won."""

    kind: Literal["reward_channel", "script"]
    entry: str | None = None


class OracleDeclaration(_Closed):
    """Where a perfect solution is."""

    form: Literal["injected_state", "script"]
    location: str


class CapabilitiesSpec(_Closed):
    """What the environment can do beside playing."""

    verifier: VerifierBinding | None = None
    oracle: OracleDeclaration | None = None
    set_state: bool = False
    llm_judged: bool = False
    rubric_tree: bool = False
    task_api: bool = False
    canaries: bool = False
    declared_tools: list[str] | None = None
    declared_task_count: int | None = Field(default=None, ge=0)


class TypeSpec(_Closed):
    """What kind of environment it is."""

    tags: list[str] = Field(min_length=1)


class NetworkPolicy(_Closed):
    """Whom the environment may call."""

    mode: Literal["public", "no-network", "allowlist"]
    allowed_hosts: list[str] = []


class JudgePin(_Closed):
    """Which model judges, where one does."""

    model: str
    version: str
    params: dict[str, Any] = {}


class ExecutionDeclaration(_Closed):
    """How the image is probed; a manifest of `spec_version: 2` has it."""

    kind: Literal["openenv_ws"] = "openenv_ws"
    probe_path: str = "validation/runtime.json"
    dockerfile: str = "Dockerfile"
    context: str = "."
    agent_boundary: Literal["api"] = "api"
    requires_credentials: bool = False


class ValidationDeclaration(_Closed):
    """The block `validation`: what graders may rely on."""

    reward: RewardDeclaration
    resources: ResourceDeclaration
    capabilities: CapabilitiesSpec = CapabilitiesSpec()
    types: TypeSpec
    network: NetworkPolicy | None = None
    judge: JudgePin | None = None
    task_distribution: dict[str, Any] | None = None
    execution: ExecutionDeclaration | None = None


class Manifest(_Open):
    """An environment's manifest."""

    spec_version: Literal[1, 2] = Field(description="version of this format")
    name: str = Field(pattern=r"^[A-Za-z0-9][A-Za-z0-9._-]*$", max_length=96)
    version: str | None = Field(default=None, description="version of the environment")
    description: str | None = None
    type: str = Field(default="space", description="where it is published")
    runtime: str = Field(default="fastapi", description="what the server is made of")
    app: str = Field(
        default=DEFAULT_APP,
        pattern=r"^[A-Za-z_]\w*(\.[A-Za-z_]\w*)*:[A-Za-z_]\w*$",
        description="the ASGI application, module:attribute from the folder",
    )
    port: int = Field(default=DEFAULT_PORT, ge=1, le=_MAX_PORT)
    action: str | None = Field(default=None, description="class of the actions")
    observation: str | None = Field(default=None, description="class of observations")
    variables: dict[str, str | int | float | bool] = Field(
        default={}, description="public variables of the Space"
    )
    validation: ValidationDeclaration | None = None


class Severity(StrEnum):
    """Whether a manifest with this problem can be used."""

    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong in a manifest, and where."""

    severity: Severity
    message: str
    line: int
    column: int


@dataclass(frozen=True, slots=True)
class ReadManifest:
    """A manifest's text, understood as far as it can be."""

    path: Path
    manifest: Manifest | None
    problems: tuple[Problem, ...]

    @property
    def errors(self) -> tuple[Problem, ...]:
        """The problems that make it unusable."""
        return tuple(p for p in self.problems if p.severity is Severity.ERROR)

    def describe(self, problem: Problem) -> str:
        """Tell a problem as compilers do: file, line, column, what."""
        place = f"{self.path}:{problem.line}:{problem.column}"
        return f"{place}: {problem.message}"


def read_manifest(path: Path) -> ReadManifest:
    """Read a manifest; whatever is wrong with its content is a `Problem`.

    Raises:
        OSError: the file cannot be read.
    """
    try:
        text = path.read_text(encoding="utf-8")
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        if isinstance(root, yaml.MappingNode):
            return _understand(path, text, root)
        problem, place = "the manifest must be a mapping of keys to values", (1, 1)
    except (RecursionError, _TooLargeError):
        problem, place = _TOO_LARGE, (1, 1)
    except UnicodeDecodeError:
        problem, place = "the file is not UTF-8", (1, 1)
    except yaml.MarkedYAMLError as error:
        problem, place = f"no YAML: {error.problem}", _place(error.problem_mark)
    except yaml.YAMLError as error:
        problem, place = f"no YAML: {error}", (1, 1)
    return ReadManifest(path, None, (Problem(Severity.ERROR, problem, *place),))


def schema_text() -> str:
    """Return the JSON schema of the manifest as it is shipped for editors."""
    return (files("openenv.cli") / SCHEMA_NAME).read_text(encoding="utf-8")


def make_schema_text() -> str:
    """Write the JSON schema of the manifest from the model."""
    schema = Manifest.model_json_schema()
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = MANIFEST_NAME
    # Editors mark what they do not know, as `openenv validate` does.
    schema["additionalProperties"] = False
    return json.dumps(schema, indent=2) + "\n"


class _TooLargeError(Exception):
    """A document has too many values, its aliases counted where they stand."""


@dataclass(slots=True)
class _Places:
    """Where each key stands."""

    found: dict[tuple[str | int, ...], Place] = field(default_factory=dict)
    doubled: list[Problem] = field(default_factory=list)
    visits: int = 0

    def visit(self, node: yaml.Node, path: tuple[str | int, ...] = ()) -> None:
        self.visits += 1
        if self.visits > _MAX_VALUES or len(path) > _MAX_DEPTH:
            raise _TooLargeError
        self.found.setdefault(path, _place(node.start_mark))
        if isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                self._visit_member(key, value, path)
        elif isinstance(node, yaml.SequenceNode):
            for number, value in enumerate(node.value):
                self.visit(value, (*path, number))

    def look_up(self, path: tuple[str | int, ...]) -> Place:
        # A missing key stands nowhere: its mapping does. A union's branch is no key.
        while path not in self.found:
            path = path[:-1]
        return self.found[path]

    def _visit_member(
        self, key: yaml.Node, value: yaml.Node, path: tuple[str | int, ...]
    ) -> None:
        name, place = str(key.value), _place(key.start_mark)
        if (*path, name) in self.found:
            message = f"{_dotted((*path, name))}: the key is given twice"
            self.doubled.append(Problem(Severity.ERROR, message, *place))
            return
        self.found[*path, name] = place
        self.visit(value, (*path, name))


def _understand(path: Path, text: str, root: yaml.MappingNode) -> ReadManifest:
    places = _Places()
    places.visit(root)
    problems = list(places.doubled)
    manifest: Manifest | None = None
    try:
        manifest = Manifest.model_validate(yaml.safe_load(text))
    except ValidationError as error:
        problems += _problems_of(error, places)
    else:
        problems += _unknown_keys(manifest, places)
    problems.sort(key=lambda problem: (problem.line, problem.column))
    usable = not any(problem.severity is Severity.ERROR for problem in problems)
    return ReadManifest(path, manifest if usable else None, tuple(problems))


def _problems_of(error: ValidationError, places: _Places) -> Iterator[Problem]:
    told: set[tuple[str | int, ...]] = set()
    for detail in error.errors(include_url=False):
        path = detail["loc"]
        # A value that fits no branch of a union is told once.
        known = path if path in places.found or detail["type"] == "missing" else None
        shown = known or _known_part(path, places)
        if shown in told:
            continue
        told.add(shown)
        message = f"{_dotted(shown)}: {_sentence(detail)}"
        yield Problem(Severity.ERROR, message, *places.look_up(shown))


def _sentence(detail: Any) -> str:  # noqa: ANN401 - pydantic's own dict
    kind, given = detail["type"], detail["input"]
    if kind == "missing":
        return "the key is required"
    if kind == "extra_forbidden":
        return "the key is not known"
    if kind == "value_error":
        return str(detail["ctx"]["error"])
    hint = ""
    if kind == "string_type" and isinstance(given, int | float):
        hint = "; put it in quotes"
    text = detail["msg"].replace("Input should", "the value should")
    return f"{text[0].lower()}{text[1:]}, got {given!r}{hint}"


def _known_part(path: tuple[str | int, ...], places: _Places) -> tuple[str | int, ...]:
    while path not in places.found:
        path = path[:-1]
    return path


def _unknown_keys(manifest: Manifest, places: _Places) -> Iterator[Problem]:
    for name in manifest.model_extra or {}:
        message = f"{name}: the key is not known and has no effect"
        yield Problem(Severity.WARNING, message, *places.look_up((name,)))


def _place(mark: yaml.Mark | None) -> Place:
    return (1, 1) if mark is None else (mark.line + 1, mark.column + 1)


def _dotted(path: tuple[str | int, ...]) -> str:
    return ".".join(map(str, path)) or MANIFEST_NAME
