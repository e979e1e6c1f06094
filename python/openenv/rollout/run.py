"""A whole rollout: server, schema, sessions, episodes, file.

`Rollout(options)` checks everything that can be checked before anything starts;
`await rollout.run()` plays. `rollout.tally` tells the sums at any moment, also after an
interrupt: what was finished by then is counted and written.
"""

from __future__ import annotations

import asyncio
import sys
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Final, Self

from openenv.core.generic_client import GenericEnvClient
from openenv.rollout._boundary import Caught, called
from openenv.rollout._schema import fetch_action_schema
from openenv.rollout.child import ChildServer
from openenv.rollout.engine import Engine, Plan
from openenv.rollout.environment import EnvironmentFolder, find_environment
from openenv.rollout.errors import InvalidRollout
from openenv.rollout.limits import ensure_open_files
from openenv.rollout.policy import LoadedPolicy, load_policy
from openenv.rollout.records import EpisodeRecord, Tally
from openenv.rollout.sampling import random_policy
from openenv.rollout.sinks import JsonLinesFile
from openenv.rollout.tools import calls_tools, compile_calls, fetch_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from types import TracebackType

    from openenv.rollout.engine import Session
    from openenv.rollout.policy import ClientClass

# Many handshakes share two event loops; a slow machine is not a broken one.
CONNECT_TIMEOUT_S: Final = 30.0


class Phase(Enum):
    """What a rollout is doing; the value is for people."""

    WAITING = "waiting"
    STARTING = "starting the server"
    OPENING = "opening sessions"
    PLAYING = "playing"
    CLOSING = "closing"


@dataclass(frozen=True, slots=True)
class RolloutOptions:
    """What to play.

    `environment` is a folder or a name; it may be None when `base_url` names a server
    that runs already. `policy` is `module:function`; None draws from the action's
    schema, or calls of the environment's tools from theirs. `out` is appended to.
    `max_steps` None lets an episode run until it is done. `headers` are sent to
    `base_url` with each handshake and request.
    """

    environment: str | None
    sessions: int
    episodes: int
    policy: str | None = None
    out: Path | None = None
    base_url: str | None = None
    max_steps: int | None = None
    seed: int = 0
    headers: Mapping[str, str] | None = field(default=None, repr=False)  # a secret


class Rollout:
    """Prepare, play, and close what was opened; use it as a context manager.

    Raises:
        InvalidRollout: an option names something that is not there or not usable.
        TooFewOpenFiles: the hard limit of open files is below what is needed.
    """

    def __init__(self, options: RolloutOptions) -> None:
        self.options = options
        self.tally: Tally = Tally(planned=options.episodes)
        self._engine: Engine | None = None
        self._phase = Phase.WAITING
        self._environment = _find_environment(options)
        self._policy = load_policy(options.policy) if options.policy else None
        ensure_open_files(min(options.sessions, options.episodes))
        self._resources = ExitStack()
        self._sink: JsonLinesFile | None = None
        if options.out is not None:
            self._sink = self._resources.enter_context(JsonLinesFile(options.out))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._resources.close()

    async def run(self) -> None:
        """Play all episodes.

        Raises:
            RolloutError: the server failed, or a record could not be written. Failed
                episodes are no error: `tally` counts them.
        """
        async with AsyncExitStack() as stack:
            server: ChildServer | None = None
            base_url = self.options.base_url
            if base_url is None:
                self._phase = Phase.STARTING
                server = await stack.enter_async_context(self._make_server())
                base_url = server.base_url
            self._engine = await self._make_engine(base_url)
            self._phase = Phase.PLAYING
            await _play_while_served(self._engine, server)
            self._phase = Phase.CLOSING

    @property
    def phase(self) -> Phase:
        """What is being done."""
        opening = self.tally.finished == 0 and self.tally.steps == 0
        return (
            Phase.OPENING if self._phase is Phase.PLAYING and opening else self._phase
        )

    def _make_server(self) -> ChildServer:
        # _find_environment found one, since there is no base_url.
        if self._environment is None:
            message = "name an environment or give --base-url"
            raise InvalidRollout(message)
        if sys.platform == "win32":
            message = "starting a server needs pipes and process groups of POSIX: "
            message += "start it yourself and give --base-url"
            raise InvalidRollout(message)
        return ChildServer(self._environment, self.options.sessions)

    async def _make_engine(self, base_url: str) -> Engine:
        options = self.options
        # A server of our own asks for no key, and gets none.
        headers = options.headers if options.base_url is not None else None
        policy = self._policy or await _random_policy(base_url, headers)
        return Engine(
            Plan(options.sessions, options.episodes, options.seed, options.max_steps),
            _session_factory(
                policy.client_class or GenericEnvClient, base_url, headers
            ),
            policy.choose,
            self._record,
            self.tally,
        )

    def _record(self, record: EpisodeRecord) -> None:
        if self._sink is not None:
            self._sink.write(record)


def _find_environment(options: RolloutOptions) -> EnvironmentFolder | None:
    if options.base_url is not None:
        return None
    if options.environment is None:
        message = "name an environment or give --base-url"
        raise InvalidRollout(message)
    return find_environment(options.environment)


async def _random_policy(
    base_url: str, headers: Mapping[str, str] | None
) -> LoadedPolicy:
    schema = await fetch_action_schema(base_url, headers)
    if not calls_tools(schema):
        return LoadedPolicy(random_policy(schema), None)
    draw = compile_calls(await fetch_tools(base_url, CONNECT_TIMEOUT_S, headers))
    return LoadedPolicy(lambda _observation, episode: draw(episode.rng), None)


def _session_factory(
    client_class: ClientClass, base_url: str, headers: Mapping[str, str] | None
) -> Callable[[], Session]:
    # A user's client without the parameter is asked for it only where it is needed.
    more: dict[str, Any] = {} if headers is None else {"headers": headers}

    def make_session() -> Session:
        session: Session = client_class(
            base_url=base_url, connect_timeout_s=CONNECT_TIMEOUT_S, **more
        )
        return session

    # A client connects later, so that a URL it cannot use is told before anything runs.
    made = called(make_session)
    if isinstance(made, Caught):
        message = f"{client_class.__name__} cannot use {base_url!r}: {made.error}"
        raise InvalidRollout(message) from made.error
    return make_session


async def _play_while_served(engine: Engine, server: ChildServer | None) -> None:
    """Play; when the server ends too early, stop playing and tell why it ended."""
    if server is None:
        await engine.run()
        return
    playing = asyncio.create_task(engine.run())
    exiting = asyncio.create_task(server.wait_exit())
    try:
        await asyncio.wait({playing, exiting}, return_when=asyncio.FIRST_COMPLETED)
        if not exiting.done():
            await playing
            return
        engine.stop()
        await playing
        raise exiting.result()
    finally:
        for task in (playing, exiting):
            task.cancel()
        await asyncio.gather(playing, exiting, return_exceptions=True)
