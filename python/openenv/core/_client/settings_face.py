"""The settings of a client under the names that upstream gives them."""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from openenv.core._client.provider import ClientProvider
    from openenv.core._client.settings import Settings


class SettingsFace:
    """Show a client's settings; those with a setter may change between calls."""

    _settings: Settings
    _lifetime: ClientProvider | None
    _fixed_mode: str

    @property
    def base_url(self) -> str | None:
        """Return the URL as given, without trailing slashes.

        None while a provider that this client starts is not running.
        """
        return self._settings.base_url

    @property
    def _base_url(self) -> str | None:
        return self._settings.base_url

    @property
    def _provider(self) -> Any | None:
        return None if self._lifetime is None else self._lifetime.provider

    @property
    def _mode(self) -> str:
        return self._fixed_mode

    @_mode.setter
    def _mode(self, value: str) -> None:  # noqa: ARG002 - the setter's form
        msg = "Cannot modify mode after initialization"
        raise AttributeError(msg)

    @property
    def _ws_url(self) -> str | None:
        return self._settings.ws_url

    @_ws_url.setter
    def _ws_url(self, value: str) -> None:
        self._settings.ws_url = value

    @property
    def _connect_timeout(self) -> float:
        return self._settings.connect_timeout_s

    @_connect_timeout.setter
    def _connect_timeout(self, value: float) -> None:
        self._settings.connect_timeout_s = value

    @property
    def _message_timeout(self) -> float | None:
        return self._settings.message_timeout_s

    @_message_timeout.setter
    def _message_timeout(self, value: float | None) -> None:
        self._settings.message_timeout_s = value

    @property
    def _max_message_size(self) -> int:
        return self._settings.max_message_bytes
