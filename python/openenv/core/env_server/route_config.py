"""A table of plain GET routes (upstream's names)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from fastapi import FastAPI
    from pydantic import BaseModel


@dataclass
class GetEndpointConfig:
    """One GET route: where it is, what answers, how it is documented."""

    path: str
    handler: Callable[..., BaseModel | dict[str, object] | Awaitable[object]]
    response_model: type[BaseModel | dict[str, object]]
    tag: str
    summary: str
    description: str


def register_get_endpoints(app: FastAPI, configs: Iterable[GetEndpointConfig]) -> None:
    """Add the routes of the table to ``app``, in order."""
    for config in configs:
        app.add_api_route(
            config.path,
            config.handler,
            methods=["GET"],
            response_model=config.response_model,
            tags=[config.tag],
            summary=config.summary,
            description=config.description,
            name="endpoint",
        )
