"""Time the codec of two builds of the extension, alternately, and print their ratio.

`python wheel_abi.py FIRST SECOND`: two folders, each holding an unpacked wheel.
"""

from __future__ import annotations

import json
import subprocess
import sys
import timeit

ROUNDS = 5
REPEATS = 2000
OBSERVATION = {
    "metadata": {},
    "position": [3, 4],
    "grid": ["A..#....", "........"] * 4,
    "legal_moves": ["up", "down", "left"],
    "outcome": "moved",
    "values": [number * 0.37 for number in range(64)],
}


def measure(folder: str) -> dict[str, float]:
    """Seconds of each operation in a fresh interpreter that loads `folder`."""
    command = [sys.executable, __file__, "--child", folder]
    printed = subprocess.check_output(command, text=True)
    seconds: dict[str, float] = json.loads(printed)
    return seconds


def child(folder: str) -> dict[str, float]:
    """Time this interpreter's build; each answer is checked first."""
    sys.path.insert(0, folder)
    from openenv import _rust  # noqa: PLC0415 - from the folder that was named

    text = _rust.json_encode(OBSERVATION)
    assert _rust.json_decode(text) == OBSERVATION
    operations = {
        "encode": lambda: _rust.json_encode(OBSERVATION),
        "decode": lambda: _rust.json_decode(text),
    }
    return {
        name: min(timeit.repeat(run, number=REPEATS, repeat=ROUNDS)) / REPEATS
        for name, run in operations.items()
    }


def main(first: str, second: str) -> None:
    """Alternate the two and print the best of each."""
    rounds = [(measure(first), measure(second)) for _ in range(ROUNDS)]
    for name in rounds[0][0]:
        best = [min(each[side][name] for each in rounds) for side in (0, 1)]
        print(
            f"{name}: {best[0] * 1e6:.2f} us, {best[1] * 1e6:.2f} us,"
            f" ratio {best[1] / best[0]:.3f}"
        )


if __name__ == "__main__":
    if sys.argv[1] == "--child":
        print(json.dumps(child(sys.argv[2])))
    else:
        main(*sys.argv[1:])
