"""`HTTPEnvServer` and the app factories (upstream's names and signatures).

``create_app`` returns a genuine ``fastapi.FastAPI`` that any ASGI server runs.
"""

# ruff: noqa: ANN401 - the authors' values may be of any type
# ruff: noqa: E402 - imports follow the check for the web framework

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable  # noqa: TC003 - annotations are introspected
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

from openenv.core.env_server._extras import require_core

require_core()

from fastapi import FastAPI, WebSocket
from pydantic import BaseModel, TypeAdapter

from openenv.core._native import native
from openenv.core.env_server._arguments import (
    configured,
    refuse_wrong_env,
    supports_concurrency,
    thread_limits,
)
from openenv.core.env_server._codec import (
    ActionDecoder,
    action_decoder,
    state_members,
)
from openenv.core.env_server._config import read_settings, server_mode
from openenv.core.env_server._dispatch import Dispatcher
from openenv.core.env_server._mcp import ToolsRpc
from openenv.core.env_server._mcp_sessions import HeldSessions
from openenv.core.env_server._routes.http import register_control_routes
from openenv.core.env_server._routes.info import (
    register_info_routes,
    register_state_route,
)
from openenv.core.env_server._routes.mcp import (
    register_mcp_route,
    register_mcp_socket,
)
from openenv.core.env_server._routes.websocket import serve_websocket
from openenv.core.env_server._runner import factory_name
from openenv.core.env_server._runtime import Runtimes
from openenv.core.env_server._sessions import Session, Sessions
from openenv.core.env_server.mcp_types import CallToolAction, ListToolsAction
from openenv.core.env_server.types import (
    ConcurrencyConfig,
    ServerCapacityStatus,
    ServerMode,
    SessionInfo,
    State,
)

if TYPE_CHECKING:
    import asyncio
    from collections.abc import AsyncIterator

_log = logging.getLogger(__name__)

_TITLE = "OpenEnv Environment HTTP API"
_REPOSITORY = "https://github.com/huggingface/OpenEnv"
_TAGS = [
    {"name": "Environment Control", "description": "Reset and step"},
    {"name": "State Management", "description": "The environment's state"},
    {"name": "Environment Info", "description": "What the environment is"},
    {"name": "Schema", "description": "JSON schemas of the environment's types"},
    {"name": "Health", "description": "Whether the server answers"},
]


class HTTPEnvServer:
    """Serves environments made by a factory over WebSocket and HTTP.

    Args:
        env: environment class, or a function that makes an environment.
        action_cls: class of actions: pydantic, msgspec, dataclass or ``dict``.
        observation_cls: class of observations, of the same kinds.
        max_concurrent_envs: most sessions, 1 by default.
        concurrency_config: the limit and more; instead of ``max_concurrent_envs``.
        env_name: name of the environment; by default the factory's.
        state_cls: class of the state that ``GET /state`` and the schema show.
        reset_observation_cls: class of what ``reset`` returns, if another.

    Raises:
        TypeError: ``env`` is an instance.
        ValueError: both limits are given, or ``OPENENV_MAX_CONCURRENT_ENVS`` is
            no positive integer.
        ConcurrencyConfigurationError: several sessions of a class that does not set
            ``SUPPORTS_CONCURRENT_SESSIONS``.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - upstream's signature
        self,
        env: Callable[[], Any],
        action_cls: type[Any] | None,
        observation_cls: type[Any] | None,
        max_concurrent_envs: int | None = None,
        concurrency_config: ConcurrencyConfig | None = None,
        env_name: str | None = None,
        state_cls: type[Any] = State,
        *,
        reset_observation_cls: type[Any] | None = None,
    ) -> None:
        refuse_wrong_env(env)
        self._env_factory = env
        self.action_cls = action_cls
        self.observation_cls = observation_cls
        self.state_cls = state_cls
        self.reset_observation_cls = reset_observation_cls
        self.env_name: str = env_name or getattr(env, "__name__", None) or "environment"
        config = configured(max_concurrent_envs, concurrency_config)
        override = read_settings().max_concurrent_envs
        wanted = max(config.max_concurrent_envs, override or 1)
        self.is_concurrency_safe: bool = supports_concurrency(env, config, wanted)
        self._config = self._effective(config, override)
        self.action_decoder: ActionDecoder = action_decoder(action_cls)
        self.dict_observations: bool = (
            observation_cls is None or observation_cls is dict
        )
        by_step = action_cls in {CallToolAction, ListToolsAction}
        self.tools_rpc: ToolsRpc = ToolsRpc(by_step=by_step)
        self.dispatcher: Dispatcher = Dispatcher(
            self.action_decoder, self.tools_rpc, dicts=self.dict_observations
        )
        self._session_registry = Sessions(
            self._config, concurrent=self.is_concurrency_safe
        )
        self.held_sessions: HeldSessions = HeldSessions(
            self._session_registry.end, self._session_registry.forget
        )
        limits = thread_limits(env, self._config.max_concurrent_envs)
        self.runtimes: Runtimes = Runtimes(env, limits)
        self.state_model: type[Any] = _state_model(state_cls)
        self._state_adapter = TypeAdapter(self.state_model)
        self.max_message_bytes: int | None = None  # told to peers once it is known
        self.stop_by_s: float | None = None  # when `close` gives up (time.monotonic)

    # -- what upstream offers ----------------------------------------------------

    @property
    def concurrency_config(self) -> ConcurrencyConfig:
        """The limits in force."""
        return self._config

    @property
    def max_concurrent_envs(self) -> int:
        """Most sessions."""
        return self._config.max_concurrent_envs

    @property
    def active_sessions(self) -> int:
        """Sessions that hold a slot."""
        return self._session_registry.active

    @property
    def abandoned_sessions(self) -> int:
        """Ended sessions whose step still runs on its thread."""
        return self._session_registry.abandoned

    def get_capacity_status(self) -> ServerCapacityStatus:
        """Return how full the server is."""
        return self._session_registry.capacity()

    def get_session_info(self, session_id: str) -> SessionInfo | None:
        """Return what is known about a session, None if there is none."""
        session = self._session_registry.find(session_id)
        return None if session is None else session.info()

    def register_routes(
        self, app: FastAPI, mode: ServerMode | str = ServerMode.SIMULATION
    ) -> None:
        """Add the server's routes to an app.

        Args:
            app: any FastAPI app.
            mode: without ``/reset``, ``/step`` and ``/state`` in production.

        Raises:
            ValueError: there is no such mode.
        """
        register_mcp_socket(app, self)
        simulation = server_mode(mode) is ServerMode.SIMULATION
        if simulation:
            register_control_routes(app, self)
            register_state_route(app, self)
        register_info_routes(app, self)
        register_mcp_route(app, self)

        async def websocket_endpoint(websocket: WebSocket) -> None:
            await serve_websocket(self, websocket)

        app.add_api_websocket_route("/ws", websocket_endpoint)

    # -- what the routes use -----------------------------------------------------

    async def open_session(self) -> Session:
        """Take a slot and build an environment; errors as `Sessions.open`."""
        return await self._session_registry.open(self.runtimes.current().session_runner)

    def end_session(self, session: Session) -> asyncio.Task[None]:
        """End a session; the task ends with its ``env.close()``."""
        return self._session_registry.end(session)

    def state_json(self, state: Any) -> bytes:
        """Encode a state in the form of ``state_cls`` (undeclared fields go)."""
        if self.state_model is not self.state_cls:
            return native.json_encode(state_members(state))
        adapter = self._state_adapter
        checked = adapter.validate_python(state, from_attributes=True)
        return native.json_encode(adapter.dump_python(checked))

    async def close(self) -> None:
        """Wait for the environments of its ended sessions, then end the threads.

        Sessions that are held by their id end here.
        """
        self.held_sessions.close_all()
        await self._session_registry.drain(self.stop_by_s)
        self.runtimes.close()

    def _effective(
        self, config: ConcurrencyConfig, override: int | None
    ) -> ConcurrencyConfig:
        """Apply ``OPENENV_MAX_CONCURRENT_ENVS`` where the class allows it."""
        if override is None or override == config.max_concurrent_envs:
            return config
        if override > 1 and not self.is_concurrency_safe:
            _log.warning(
                "OPENENV_MAX_CONCURRENT_ENVS=%d has no effect: %s does not set "
                "SUPPORTS_CONCURRENT_SESSIONS",
                override,
                factory_name(self._env_factory),
            )
            return config
        return config.model_copy(update={"max_concurrent_envs": override})


def create_app(  # noqa: PLR0913, PLR0917 - upstream's signature
    env: Callable[[], Any],
    action_cls: type[Any],
    observation_cls: type[Any],
    env_name: str | None = None,
    max_concurrent_envs: int | None = None,
    concurrency_config: ConcurrencyConfig | None = None,
    gradio_builder: Callable[..., Any] | None = None,
    custom_tab_name: str = "Custom",
    custom_tab_primary: bool = False,  # noqa: FBT001, FBT002, RUF100 - upstream's
    show_default_tab: bool = True,  # noqa: FBT001, FBT002, RUF100 - upstream's
    title_override: str | None = None,
    state_cls: type[Any] = State,
    *,
    mode: ServerMode | str | None = None,
    reset_observation_cls: type[Any] | None = None,
) -> FastAPI:
    """Make the app of an environment.

    Args:
        env: environment class, or a function that makes an environment.
        action_cls: class of actions.
        observation_cls: class of observations.
        env_name: name of the environment.
        max_concurrent_envs: most sessions, 1 by default.
        concurrency_config: the limit and more; instead of ``max_concurrent_envs``.
        gradio_builder: kept for upstream's callers, as the four below: they shape
            the web page, which this server does not serve.
        custom_tab_name: as above.
        custom_tab_primary: as above.
        show_default_tab: as above.
        title_override: as above.
        state_cls: class of the state.
        mode: "simulation" or "production"; by default ``OPENENV_MODE``, else
            simulation.
        reset_observation_cls: class of what ``reset`` returns, if another.

    Raises:
        TypeError: ``env`` is an instance.
        ValueError: a setting is invalid.
        ConcurrencyConfigurationError: the class does not allow several sessions.
    """
    del gradio_builder, custom_tab_name, custom_tab_primary
    del show_default_tab, title_override
    if read_settings().web_interface:
        _log.warning("ENABLE_WEB_INTERFACE has no effect: there is no web page yet")
    return create_fastapi_app(
        env,
        action_cls,
        observation_cls,
        max_concurrent_envs,
        concurrency_config,
        env_name,
        state_cls,
        mode=mode,
        reset_observation_cls=reset_observation_cls,
    )


def create_fastapi_app(  # noqa: PLR0913, PLR0917 - upstream's signature
    env: Callable[[], Any],
    action_cls: type[Any] | None = None,
    observation_cls: type[Any] | None = None,
    max_concurrent_envs: int | None = None,
    concurrency_config: ConcurrencyConfig | None = None,
    env_name: str | None = None,
    state_cls: type[Any] = State,
    *,
    mode: ServerMode | str | None = None,
    reset_observation_cls: type[Any] | None = None,
) -> FastAPI:
    """Make the app of an environment; arguments and errors as `create_app`."""
    chosen = read_settings().mode if mode is None else mode
    checked = ServerMode.SIMULATION if chosen is None else server_mode(chosen)
    server = HTTPEnvServer(
        env,
        action_cls,
        observation_cls,
        max_concurrent_envs,
        concurrency_config,
        env_name,
        state_cls,
        reset_observation_cls=reset_observation_cls,
    )

    @asynccontextmanager
    async def lifespan(app: FastAPI) -> AsyncIterator[None]:
        del app
        yield
        await server.close()

    app = FastAPI(
        title=_TITLE,
        version="1.0.0",
        description="Environments for agents, over HTTP and WebSocket.",
        openapi_tags=_TAGS,
        contact={"name": "OpenEnv Team", "url": _REPOSITORY},
        license_info={
            "name": "BSD-3-Clause",
            "url": f"{_REPOSITORY}/blob/main/LICENSE",
        },
        lifespan=lifespan,
    )
    app.state.openenv_server = server
    server.register_routes(app, mode=checked)
    return app


def _state_model(state_cls: type[Any]) -> type[Any]:
    """Return the model FastAPI documents for ``GET /state``."""
    if inspect.isclass(state_cls) and issubclass(state_cls, BaseModel):
        return state_cls
    return dict[str, Any]
