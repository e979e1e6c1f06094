"""Steps through echo sessions with the ``openenv`` of whichever Python runs it.

``echo_client.py URL SESSIONS STEPS [plain]``: opens the sessions, resets them, lets
each take its steps one after the other, all sessions at once, checks every answer, and
prints ``{"cpu_us": …}``: CPU microseconds a step of this process. With ``plain``,
upstream's client asks for no compression, as ours never does.
"""

import asyncio
import functools
import json
import sys
import time

import uvloop

from openenv.core import env_client
from openenv.core.generic_client import GenericEnvClient

MESSAGE = "x" * 60  # the whole message is then about 100 bytes long


async def episode(client, steps):
    action = {"message": MESSAGE}
    for _ in range(steps):
        result = await client.step(action)
        assert result.observation["message"] == MESSAGE
        assert result.reward == 1.0


async def main(url, sessions, steps):
    clients = [GenericEnvClient(url) for _ in range(sessions)]
    for client in clients:
        await client.connect()
        await client.reset()
    await asyncio.gather(*(episode(client, 5) for client in clients))
    start = time.process_time()
    await asyncio.gather(*(episode(client, steps) for client in clients))
    spent = time.process_time() - start
    print(json.dumps({"cpu_us": spent / (sessions * steps) * 1e6}), flush=True)
    await asyncio.gather(*(client.close() for client in clients))


if "plain" in sys.argv[4:]:
    env_client.ws_connect = functools.partial(env_client.ws_connect, compression=None)
uvloop.run(main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
