"""What every test may use: the repository's own test packages and environments."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

# Helpers are imported as `tests.support…`, environments of the checkout by their name.
for folder in (ROOT, ROOT / "envs"):
    if str(folder) not in sys.path:
        sys.path.insert(0, str(folder))
