"""A pipe whose end says that this process is gone, however that came about.

Children get the end to read from. The other one is nowhere but here: programs that are
run do not inherit it, and a forked child closes it, so that it does not live on there.
"""

from __future__ import annotations

import os
from contextlib import suppress
from typing import Final


class Lifeline:
    """Hold a pipe until `close`.

    Attributes:
        read_end: To be some child's standard input.
    """

    def __init__(self) -> None:
        self.read_end, self._write_end = os.pipe()
        _held.add(self)

    def hand_over(self) -> None:
        """Close the end that the child has by now."""
        os.close(self.read_end)

    def close(self) -> None:
        """Close the end that is held here; may be repeated."""
        if self in _held:
            _held.discard(self)
            with suppress(OSError):
                os.close(self._write_end)


def _close_in_child() -> None:
    for lifeline in [*_held]:
        lifeline.close()


_held: Final[set[Lifeline]] = set()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_close_in_child)
