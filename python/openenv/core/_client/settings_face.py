"""The settings of a client under the names that upstream gives them."""

# ruff: noqa: ANN401 - upstream's signatures

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any, Final

from typing_extensions import override

from openenv.core._client.home import Home
from openenv.core._client.link import Link
from openenv.core._client.settings import checked_connect_timeout_s, checked_seconds

if TYPE_CHECKING:
    from openenv.core._client.provider import ClientProvider
    from openenv.core._client.settings import Settings

# What a copy has anew, or finds out again.
_NOT_COPIED: Final = frozenset(
    {
        "_child_clients",
        "_closes",
        "_connect_turns",
        "_connecting",
        "_home",
        "_known_codec",
        "_lifetime",
        "_outside",
        "_own_socket",
        "_parent",
        "_sync_face",
    }
)


class SettingsFace:
    """Show a client's settings; those with a setter may change between calls.

    They are also all that a copy of the client begins with.
    """

    _settings: Settings
    _lifetime: ClientProvider | None
    _fixed_mode: str
    _home: Home

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
        self._settings.connect_timeout_s = checked_connect_timeout_s(
            "_connect_timeout", value
        )

    @property
    def _message_timeout(self) -> float | None:
        return self._settings.message_timeout_s

    @_message_timeout.setter
    def _message_timeout(self, value: float | None) -> None:
        self._settings.message_timeout_s = checked_seconds("_message_timeout", value)

    @property
    def _max_message_size(self) -> int:
        return self._settings.max_message_bytes

    @override
    def __getstate__(self) -> dict[str, Any]:
        """Return the settings, for an unconnected copy here or in another process.

        Raises:
            TypeError: It has a provider, which two clients would both stop.
        """
        if self._lifetime is not None:
            msg = (
                f"this {type(self).__name__} has a provider, which its copy would stop "
                "too, so it cannot be copied or pickled; make a client of its base_url"
            )
            raise TypeError(msg)
        state = {k: v for k, v in self.__dict__.items() if k not in _NOT_COPIED}
        return state | {"_settings": dataclasses.replace(self._settings)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._lifetime = None
        self._home = self._new_home()

    def _new_home(self) -> Home:
        link = Link(self._settings, self._lifetime)
        return Home(link, on_thread=self._settings.on_thread)
