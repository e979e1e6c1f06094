"""Calls by ``_send`` and ``_receive``, where something goes wrong or elsewhere."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from unittest.mock import AsyncMock, patch

import pytest
from tests.integration.client.in_thread import scripted_in_thread
from tests.support.processes import wait_until
from websockets.asyncio.client import connect

from openenv.core.env_client import EnvClient
from openenv.core.generic_client import GenericEnvClient
from openenv.errors import (
    ConnectionClosed,
    ExecutionFailed,
    RemoteProtocolError,
    RequestTimeout,
    SessionLost,
)

ANSWER = {"type": "observation", "data": {"observation": {"made": "up"}}}


@pytest.fixture
def server():
    with scripted_in_thread() as server:
        yield server


def echo(result):
    return result.observation["echo"]["it"]


class Raw(GenericEnvClient):
    """Go the slow way, with nothing changed."""

    async def _receive(self):
        return await super()._receive()


class Waiting(GenericEnvClient):
    """Wait between a message out and a message in, as long as there is a gate."""

    gate = None

    async def wait(self):
        if self.gate is not None:
            await self.gate.wait()


class WaitsAfterSend(Waiting):
    async def _send(self, message):
        await super()._send(message)
        await self.wait()


class WaitsBeforeReceive(Waiting):
    async def _receive(self):
        await self.wait()
        return await super()._receive()


class WaitsInBetween(Waiting):
    async def _send_and_receive(self, message):
        await self._send(message)
        await self.wait()
        return await self._receive()


class OwnSocket(GenericEnvClient):
    """Connect by itself."""

    connects = 0

    async def connect(self):
        if self._ws is None:
            self.connects += 1
            self._ws = await connect(self._ws_url, proxy=None)
        return self


class Slow:
    """Be a socket whose ``send`` does not return when the bytes have left."""

    def __init__(self, socket):
        self.socket, self.gate = socket, None
        self.recv, self.close = socket.recv, socket.close

    async def send(self, text):
        await self.socket.send(text)
        if self.gate is not None:
            await self.gate.wait()


# --- calls that are given up -------------------------------------------------------


async def give_up(client, how):
    if how == "timeout":
        with pytest.raises(RequestTimeout):
            await client.step({"it": "OLD"}, timeout_s=0.1)
        return
    step = asyncio.ensure_future(client.step({"it": "OLD"}))
    await asyncio.sleep(0.1)
    step.cancel()
    with pytest.raises(asyncio.CancelledError):
        await step


@pytest.mark.parametrize("how", ["timeout", "cancelled"])
@pytest.mark.parametrize("cls", [WaitsAfterSend, WaitsBeforeReceive, WaitsInBetween])
async def test_a_late_answer_reaches_nobody_wherever_the_call_stood(server, cls, how):
    async with cls(server.url) as client:
        await client.reset()
        client.gate = asyncio.Event()
        await give_up(client, how)
        client.gate = None

        assert "NEW" == echo(await client.step({"it": "NEW"}))
        assert {"session": 1, "steps": 2} == await client.state()
        await client.close()
        assert 2 == (await client.reset()).observation["session"]


async def test_a_failing_override_leaves_no_answer_behind(server):
    class Failing(GenericEnvClient):
        fails = False

        async def _receive(self):
            if self.fails:
                raise KeyError("mine")
            return await super()._receive()

    async with Failing(server.url) as client:
        await client.reset()
        client.fails = True
        with pytest.raises(KeyError, match="mine"):
            await client.step({"it": "OLD"})
        client.fails = False
        assert "NEW" == echo(await client.step({"it": "NEW"}))


async def test_an_error_of_the_server_gives_nothing_up(server):
    client = await OwnSocket(server.url).connect()
    await client.reset()
    with pytest.raises(ExecutionFailed):
        await client.step({"error": "EXECUTION_ERROR"})
    assert 2 == (await client.step({"it": 1})).observation["steps"]
    await client.close()


@pytest.mark.parametrize("how", ["timeout", "cancelled"])
async def test_a_send_given_up_on_an_outside_socket_drops_it(server, how):
    client = GenericEnvClient(server.url)
    slow = client._ws = Slow(await connect(client._ws_url, proxy=None))
    await client.reset()
    slow.gate = asyncio.Event()
    await give_up(client, how)

    assert client._ws is None
    with pytest.raises(SessionLost, match="given up"):
        await client.step({"it": "NEW"})
    assert 2 == (await client.reset()).observation["session"]
    await client.close()


@pytest.mark.parametrize("how", ["timeout", "cancelled"])
async def test_so_does_a_call_whose_override_speaks_to_the_socket(server, how):
    class Direct(WaitsInBetween, OwnSocket):
        async def _send(self, message):
            await self._ws.send(json.dumps(message))

        async def _receive(self):
            return json.loads(await self._ws.recv())

    client = await Direct(server.url).connect()
    await client.reset()
    client.gate = asyncio.Event()
    await give_up(client, how)
    client.gate = None
    with pytest.raises(SessionLost, match="given up"):
        await client.step({"it": "NEW"})
    await client.reset()
    assert "NEW" == echo(await client.step({"it": "NEW"}))
    await client.close()


async def test_an_override_finds_a_socket_after_reset_replaced_the_session(server):
    class Direct(GenericEnvClient):
        async def _send(self, message):
            await self._ws.send(json.dumps(message))

    async with Direct(server.url) as client:
        await client.reset()
        with pytest.raises(ConnectionClosed):
            await client.step({"drop": 1})
        for call in (client.state, lambda: client.step({})):
            with pytest.raises(SessionLost):
                await call()
        assert 2 == (await client.reset()).observation["session"]


async def test_an_override_may_make_calls_and_begin_tasks(server):
    class Counting(GenericEnvClient):
        background = None
        counts = ()

        async def _receive(self):
            answer = await super()._receive()
            if self.background is None:
                self.background = asyncio.ensure_future(self.watch())
            if "observation" == answer["type"]:
                self.counts += ((await self.state())["steps"],)
            return answer

        async def watch(self):
            await self.gate.wait()
            return await self.state()

    async with Counting(server.url) as client:
        client.gate = asyncio.Event()
        await client.reset()
        await client.step({})
        await client.close()
        await client.reset()
        client.gate.set()
        assert {"session": 2, "steps": 0} == await client.background

    assert (0, 1, 0) == client.counts


async def test_a_call_receives_from_what_it_was_sent_to_or_fails(server):
    class Both(WaitsAfterSend, OwnSocket):
        pass

    for cls in (WaitsAfterSend, Both):
        client = await cls(server.url).connect()
        await client.reset()
        client.gate = asyncio.Event()
        step = asyncio.ensure_future(client.step({"it": "OLD"}))
        await asyncio.sleep(0.05)
        gate, client.gate = client.gate, None
        await client.close()
        await client.connect()
        steps = [asyncio.ensure_future(client.step({"it": n})) for n in range(3)]
        gate.set()
        with pytest.raises(ConnectionClosed):
            await step
        assert [0, 1, 2] == [echo(await step) for step in steps]
        await client.close()


async def test_calls_that_wait_for_their_turn_end_with_the_session(server):
    class Both(Raw, OwnSocket):
        pass

    for cls in (Raw, OwnSocket, Both):
        client = await cls(server.url).connect()
        await client.reset()
        steps = [
            asyncio.ensure_future(client.step({"sleep": 5, "it": n})) for n in range(3)
        ]
        await asyncio.sleep(0.05)
        async with asyncio.timeout(3):
            await client.close()
            ends = await asyncio.gather(*steps, return_exceptions=True)

        assert [ConnectionClosed] * 3 == [type(end) for end in ends]
        assert client._ws is None


async def test_calls_may_wait_for_the_one_that_connects(server):
    class Connecting(OwnSocket):
        async def _send(self, message):
            await self.connect()
            await super()._send(message)

    client = Connecting(server.url)
    steps = await asyncio.gather(*(client.step({"it": n}) for n in range(3)))
    await client.close()

    assert [0, 1, 2] == [echo(step) for step in steps]


async def test_calls_that_wait_never_run_in_the_session_of_another_socket(server):
    for cls in (Raw, OwnSocket):
        client = await cls(server.url).connect()
        await client.reset()
        steps = [
            asyncio.ensure_future(client.step({"sleep": 0.2, "it": n}))
            for n in range(2)
        ]
        await asyncio.sleep(0.05)
        before, client._ws = client._ws, await connect(client._ws_url, proxy=None)
        ends = await asyncio.gather(*steps, return_exceptions=True)
        assert isinstance(ends[1], ConnectionClosed)
        assert {"it": 1} == (await client.step({"it": 1})).observation["echo"]
        await before.close()
        await client.close()


# --- other loops, threads and processes --------------------------------------------


def test_a_slow_client_may_be_used_by_one_loop_after_another(server):
    async def play():
        await client.reset()
        steps = await asyncio.gather(*(client.step({"it": n}) for n in range(3)))
        return [echo(step) for step in steps]

    client = Raw(server.url)

    assert [[0, 1, 2]] * 3 == [asyncio.run(play()) for _ in range(3)]
    client.close()


@pytest.mark.parametrize("home", ["I/O thread", "a loop"])
def test_a_slow_client_may_be_used_by_several_loops_at_once(server, home):
    async def play(name):
        async with asyncio.timeout(10):
            return [echo(await client.step({"it": [name, n]})) for n in range(10)]

    async def begin_here():
        await client.reset()
        return await asyncio.gather(
            play(3), *(asyncio.to_thread(asyncio.run, play(n)) for n in range(3))
        )

    client = Raw(server.url)
    if home == "a loop":
        played = asyncio.run(begin_here())
    else:
        client.reset()
        played = []
        threads = [
            threading.Thread(target=lambda n=n: played.append(asyncio.run(play(n))))
            for n in range(3)
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    client.close()

    assert len(played) == (4 if home == "a loop" else 3)
    for steps in played:
        assert [[steps[0][0], n] for n in range(10)] == steps


async def test_a_socket_serves_other_threads_on_its_own_loop(server):
    client = await OwnSocket(server.url).connect()
    await client.reset()
    step = await asyncio.to_thread(client.sync().step, {"it": 1})
    with pytest.raises(RuntimeError, match="await the client's method instead"):
        client.sync().step({"it": 2})
    await asyncio.to_thread(client.sync().close)

    assert 1 == echo(step)
    assert client._ws is None


@pytest.mark.parametrize("put", ["inside", "outside"])
def test_a_socket_of_an_ended_loop_is_dropped_with_a_typed_error(server, put):
    async def begin():
        if put == "inside":
            client._ws = socket
        await client.reset()

    socket = AsyncMock()
    socket.recv.return_value = json.dumps(ANSWER)
    client = GenericEnvClient(server.url)
    if put == "outside":  # where it belongs is found out when it is used
        client._ws = socket
    asyncio.run(begin())
    socket.recv.side_effect = RuntimeError("attached to a different event loop")
    with pytest.raises(ConnectionClosed, match="event loop"):
        client.step({})
    with pytest.raises(SessionLost, match="event loop"):
        client.step({})
    assert 1 == client.reset().observation["session"]
    client.close()


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")
@pytest.mark.parametrize("cls", [Raw, OwnSocket])
def test_a_forked_child_begins_anew_while_the_parent_waits(server, cls):
    client = cls(server.url).sync()
    client.connect()
    client.reset()
    steps = []
    waiting = threading.Thread(
        target=lambda: steps.append(client.step({"it": "P", "sleep": 0.5}))
    )
    waiting.start()
    while len(server.received) < 2:
        waiting.join(0.01)
    reading, writing = os.pipe()
    child = os.fork()
    if child == 0:
        _answer_in_child(client, writing)
    os.close(writing)
    with os.fdopen(reading) as told:
        assert "lost 2" == told.read()
    os.waitpid(child, 0)
    waiting.join()
    steps.append(client.step({"it": "Q"}))
    client.close()

    assert ["P", "Q"] == [echo(step) for step in steps]


def _answer_in_child(client, writing):
    import signal  # noqa: PLC0415 - of the child

    signal.alarm(8)  # rather than hang
    try:
        try:
            client.step({})
        except (SessionLost, ConnectionClosed):
            session = client.reset().observation["session"]
            client.close()
            os.write(writing, f"lost {session}".encode())
    except BaseException as exc:  # noqa: BLE001 - told to the parent
        os.write(writing, repr(exc).encode())
    os._exit(0)


# --- which calls go the slow way ---------------------------------------------------


async def test_an_own_exchange_carries_every_call(server):
    answers = AsyncMock(return_value=ANSWER)
    async with GenericEnvClient(server.url) as client:
        await client.reset()
        await client.step({})
        client._send_and_receive = answers
        assert {"made": "up"} == (await client.step({"a": 1})).observation
    with patch.object(GenericEnvClient, "_send_and_receive", answers):
        assert {"made": "up"} == (await client.step({})).observation

    first, _ = answers.await_args_list
    assert {"type": "step", "data": {"a": 1}} == first.args[0]


async def test_the_client_connects_unless_connected(server):
    client = GenericEnvClient(server.url)
    await client._ensure_connected()
    socket = client._ws
    await client._ensure_connected()

    assert client._ws is socket
    assert 1 == (await client.reset()).observation["session"]
    await client.close()


async def test_reset_connects_in_the_subclasss_way(server):
    class Begins(OwnSocket):
        async def connect(self):
            await super().connect()
            await self.reset()
            return self

    class Recursive(GenericEnvClient):
        async def _connect_async(self, **kwargs):
            await self.reset()
            return await super()._connect_async(**kwargs)

    for cls in (OwnSocket, Begins, Recursive):
        client = cls(server.url)
        await client.reset()
        assert 1 == (await client.step({"it": 1})).observation["steps"]
        assert (cls is Recursive) != (client.__dict__.get("connects") == 1)
        await client.close()


# --- the socket --------------------------------------------------------------------


@pytest.mark.parametrize("by", ["us", "the server"])
@pytest.mark.parametrize("cls", [GenericEnvClient, OwnSocket])
async def test_a_dead_socket_is_dropped_and_the_session_lost(server, cls, by):
    client = cls(server.url)
    client._ws = await connect(client._ws_url, proxy=None)
    await client.reset()
    if by == "us":
        await client._ws.close()
    with pytest.raises(ConnectionClosed) as caught:
        await client.step({"drop": 1})
    with pytest.raises(SessionLost):
        await client.step({})
    with pytest.raises(SessionLost):
        await client.state()

    assert caught.value.__cause__ is not None
    assert 2 == (await client.reset()).observation["session"]
    assert 1 == (await client.step({})).observation["steps"]
    assert (cls is OwnSocket) == (client.__dict__.get("connects") == 1)
    await client.close()


@pytest.mark.parametrize("cls", [GenericEnvClient, OwnSocket])
async def test_reset_replaces_a_session_whose_socket_is_dead(server, cls):
    client = cls(server.url)
    client._ws = await connect(client._ws_url, proxy=None)
    await client.reset()
    await client._ws.close()
    assert 2 == (await client.reset()).observation["session"]
    assert 1 == (await client.step({})).observation["steps"]
    await client.close()


@pytest.mark.parametrize(("code", "sessions"), [(1001, 2), (1009, 1)])
async def test_reset_is_tried_once_more_where_the_server_went(server, code, sessions):
    client = OwnSocket(server.url)
    await client.reset()
    with pytest.raises(ConnectionClosed):
        await client.reset(close=code)

    assert sessions == server.sessions
    with pytest.raises(ConnectionClosed):
        await client.reset(close=code)  # in a session of its own
    assert sessions + 1 == server.sessions
    await client.close()


async def test_close_ends_a_reset_for_good(server):
    client = await OwnSocket(server.url).connect()
    reset = asyncio.ensure_future(client.reset(sleep=5))
    await server_hears(server)
    await client.close()
    with pytest.raises(ConnectionClosed):
        await reset

    assert client._ws is None
    assert 1 == server.sessions


async def server_hears(server):
    async with asyncio.timeout(5):
        while not server.received:  # noqa: ASYNC110 - in another thread
            await asyncio.sleep(0.005)


async def test_a_socket_taken_away_after_use_has_lost_the_session(server):
    client = GenericEnvClient(server.url)
    client._ws = AsyncMock()
    client._ws = None
    assert 1 == (await client.step({})).observation["steps"]  # it had no session
    client._ws = await connect(client._ws_url, proxy=None)
    await client.reset()
    await client._ws.close()
    client._ws = None
    with pytest.raises(SessionLost, match="taken away"):
        await client.step({})
    await client.reset()
    assert 1 == (await client.step({})).observation["steps"]
    await client.close()


async def test_the_own_connection_can_be_closed_like_a_socket(server):
    async with GenericEnvClient(server.url) as client:
        await client.reset()
        await client.step({})
        socket = client._ws
        assert (False, 1) == (socket.closed, socket.state)
        await socket.close()
        assert (True, 3) == (socket.closed, socket.state)
        assert client._ws is None
        with pytest.raises(ConnectionClosed):
            await socket.send('{"type": "state"}')
        with pytest.raises(SessionLost):
            await client.step({})
        with pytest.raises(SessionLost):
            await client.step({})
        assert 2 == (await client.reset()).observation["session"]


async def test_the_own_connection_can_be_spoken_to_like_a_socket(server):
    class Direct(GenericEnvClient):
        async def _send(self, message):
            await self._ws.send(json.dumps(message))

        async def _receive(self):
            return json.loads(await self._ws.recv())

    async with Direct(server.url) as client:
        await client.reset()
        assert 1 == echo(await client.step({"it": 1}))
        assert client._ws is client._ws
        client._ws = client._ws
        await client._ws.send('{"type": "state"}')
        answer = json.loads(await client._ws.recv())

    assert {"session": 1, "steps": 1} == answer["data"]


@pytest.mark.parametrize("hung", ["send", "recv"])
async def test_a_socket_that_hangs_is_waited_for_in_bounded_time(hung):
    async def hang(*_):
        await asyncio.Event().wait()

    client = GenericEnvClient("http://nobody.example", message_timeout_s=0.05)
    socket = client._ws = AsyncMock()
    setattr(socket, hung, hang)
    socket.close = hang
    async with asyncio.timeout(4):
        with pytest.raises(RequestTimeout):
            await client.step({})
        assert client._ws is None
        client._ws = socket
        await client.close()

    assert client._ws is None


@pytest.mark.parametrize(
    "text",
    ["[1]", "not json", b"\xff", '{"type": "error", "data": [1]}', None],
)
async def test_what_is_no_message_is_the_peers_fault(text):
    client = GenericEnvClient("http://nobody.example")
    client._ws = AsyncMock()
    client._ws.recv.return_value = text
    with pytest.raises(RemoteProtocolError, match="no message"):
        await client.step({})
    with pytest.raises(SessionLost, match="no message"):
        await client.step({})


# --- plain overrides behind the blocking face ----------------------------------------


class Plain(GenericEnvClient):
    """Override by plain functions that use what they call."""

    closed = 0

    def reset(self, **kwargs):
        result = super().reset(**kwargs)
        self.last = result.observation
        return result

    def step(self, action, **kwargs):
        return super().step(action | {"more": 1}, **kwargs)

    def close(self):
        super().close()
        self.closed += 1


def test_plain_overrides_get_values_behind_the_blocking_face(server):
    client = Plain(server.url)
    with client.sync() as face:
        first = face.reset(seed=1)
        assert first.observation == client.last
        assert {"it": 1, "more": 1} == face.step({"it": 1}).observation["echo"]

    assert 1 == client.closed
    wait_until(lambda: server.said_goodbye == 1, 5)


async def test_they_do_so_inside_a_running_loop(server):
    loop = asyncio.get_running_loop()
    client = Plain(server.url)
    with client.sync() as face:
        assert face.reset().observation == client.last
        assert loop is asyncio.get_running_loop()


@pytest.mark.parametrize("blocking", [True, False])
def test_they_do_so_in_further_sessions(server, blocking):
    class Connects(Plain):
        def connect(self):
            self.session = super().connect()._ws
            return self

    client = Connects(server.url)
    if blocking:
        child = client.sync().new_session().async_client
        client.sync().close()
    else:

        async def use():
            child = await client.new_session()
            await EnvClient.close(client)
            return child

        child = asyncio.run(use())

    assert child.session is not None
    assert 1 == child.closed
    wait_until(lambda: server.said_goodbye == 1, 5)


def test_a_plain_override_may_return_an_awaitable(server):
    class Later(GenericEnvClient):
        def reset(self, **kwargs):
            return self.begin(**kwargs)

        async def begin(self, **kwargs):
            return await super().reset(**kwargs)

    client = Later(server.url)
    with client.sync() as face:
        assert 1 == face.reset().observation["session"]
