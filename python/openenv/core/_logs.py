"""What becomes of log records: nothing, unless the application wants them.

All loggers are children of ``openenv``, which has a `logging.NullHandler`, as the
documentation of `logging` asks of libraries. Our own commands and server show warnings
on stderr.
"""

from __future__ import annotations

import logging

_LOGGER = logging.getLogger("openenv")
_LOGGER.addHandler(logging.NullHandler())


def show_warnings() -> None:
    """Show warnings and errors on stderr, unless logging was set up by somebody."""
    shown = logging.lastResort
    set_up = {type(each) for each in _LOGGER.handlers} - {logging.NullHandler}
    if shown is not None and not set_up and not logging.getLogger().handlers:
        _LOGGER.addHandler(shown)
