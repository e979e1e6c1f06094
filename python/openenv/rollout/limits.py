"""The limit of open files: each session is a socket on both sides."""

from __future__ import annotations

import sys

from openenv.rollout.errors import TooFewOpenFiles

# Besides the sessions: standard streams, loop, pipes, libraries, an output file.
RESERVED_FILES = 64

if sys.platform != "win32":
    import resource


def ensure_open_files(sessions: int) -> None:
    """Raise the soft limit of open files to the hard one, and check that it is enough.

    Children started afterwards inherit the raised limit.

    Args:
        sessions: connections that will be open at the same time.

    Raises:
        TooFewOpenFiles: the hard limit is below what the sessions need.
    """
    if sys.platform == "win32":  # it has no such limit
        return
    needed = sessions + RESERVED_FILES
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if hard != resource.RLIM_INFINITY and hard < needed:
        raise TooFewOpenFiles(_explain(sessions, needed, hard))
    if soft in (resource.RLIM_INFINITY, hard):
        return
    # An unlimited hard limit cannot always be taken as it is (macOS refuses it).
    wanted = max(needed, soft) if hard == resource.RLIM_INFINITY else hard
    resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))


def _explain(sessions: int, needed: int, hard: int) -> str:
    most = max(hard - RESERVED_FILES, 0)
    return (
        f"{sessions} sessions need {needed} open files, but the hard limit is {hard}: "
        f"raise it (ulimit -Hn {needed}) or use at most {most} sessions"
    )
