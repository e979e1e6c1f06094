"""The ways in which trainers' scripts use a client, each as a script of its own."""

from __future__ import annotations

import subprocess
import sys

import pytest
from tests.integration.trainers.scripts import run_script


def test_bare_blocking_calls(url):
    body = """
    env = GridWorldEnv(base_url=URL)
    print(play(env))
    env.close()
    print(play(env))
    env.close()
    """
    assert 2 == len(run_script(url, body))


def test_with(url):
    body = """
    with GridWorldEnv(base_url=URL) as env:
        print(play(env), play(env, seed=2))
    """
    assert 2 == len(run_script(url, body))


def test_the_blocking_face(url):
    body = """
    with GridWorldEnv(base_url=URL).sync() as env:
        print(play(env))
    env = GridWorldEnv(base_url=URL).sync()
    print(play(env))
    env.close()
    """
    assert 2 == len(run_script(url, body))


def test_a_script_that_never_closes_ends_all_the_same(url):
    body = """
    env = GridWorldEnv(base_url=URL)
    env.reset()
    other = GridWorldEnv(base_url=URL).sync()
    other.reset()
    print("end")
    """
    assert ["end"] == run_script(url, body, "-Wignore", timeout_s=30)


@pytest.mark.parametrize("threads", [64, 1000])
def test_a_client_a_thread(url, threads):
    body = """
    import threading
    from concurrent.futures import ThreadPoolExecutor

    ready = threading.Barrier(COUNT)

    def work(seed):
        with GridWorldEnv(base_url=URL).sync() as env:
            ready.wait(100)
            return play(env, seed)

    with ThreadPoolExecutor(COUNT) as pool:
        print(len(list(pool.map(work, range(COUNT)))))
    io = [t for t in threading.enumerate() if t.name == "openenv-io"]
    print(len(io), threading.active_count())
    """
    out = run_script(url, body.replace("COUNT", str(threads)), timeout_s=150)

    assert [str(threads), "1", "2"] == out


def test_one_client_of_many_threads(url):
    body = """
    from concurrent.futures import ThreadPoolExecutor

    with GridWorldEnv(base_url=URL).sync() as env:
        env.reset(seed=1)
        with ThreadPoolExecutor(16) as pool:
            results = list(pool.map(env.step, moves(4)))
        assert env.state().step_count <= len(results)
        print(len(results))
    """
    assert ["16"] == run_script(url, body)


def test_gather_over_256_clients(url):
    body = """
    async def one(seed):
        async with GridWorldEnv(base_url=URL) as env:
            return await play_async(env, seed)

    async def main():
        return await asyncio.gather(*map(one, range(256)))

    print(len(asyncio.run(main())))
    """
    assert ["256"] == run_script(url, body)


def test_asyncio_run_again_and_again_with_one_client(url):
    body = """
    env = GridWorldEnv(base_url=URL)
    for _ in range(3):
        print(asyncio.run(play_async(env)))
    print(play(env))
    env.close()
    """
    assert 4 == len(run_script(url, body))


def test_asyncios_debug_mode(url):
    body = """
    async def main():
        async with GridWorldEnv(base_url=URL) as env:
            print(await play_async(env))

    asyncio.run(main(), debug=True)
    print(play(GridWorldEnv(base_url=URL).sync()))
    """
    options = ("-X", "dev", "-Wignore::ResourceWarning")
    assert 2 == len(run_script(url, body, *options))


@pytest.mark.parametrize("method", ["spawn", "forkserver", "fork"])
def test_clients_made_here_and_used_in_workers(url, method):
    # Workers import what they are sent by name, so it lives in a module.
    body = """
    import multiprocessing
    import warnings

    from tests.integration.trainers import worker

    warnings.filterwarnings("ignore", "This process .* is multi-threaded")
    envs = [GridWorldEnv(base_url=URL, message_timeout_s=30) for _ in range(4)]
    envs[0].reset()  # one of them is connected already
    context = multiprocessing.get_context("METHOD")
    with context.Pool(2) as pool:
        sessions = pool.map(worker.play, envs)
    print(len(sessions), len({episode for episode, _ in sessions}))
    envs[0].step(moves(1)[0])
    envs[0].close()
    """
    assert ["4", "4"] == run_script(url, body.replace("METHOD", method))


def test_clients_are_sent_by_cloudpickle(url):
    pytest.importorskip("cloudpickle")
    body = """
    import pickle
    import cloudpickle

    class Mine(GridWorldEnv):
        def __init__(self, *args, **kwargs):
            super().__init__(*args, **kwargs)
            self.note = "kept"

    env = Mine(URL)
    env.reset()
    twin = pickle.loads(cloudpickle.dumps(env))
    face = pickle.loads(cloudpickle.dumps(env.sync()))
    print(twin.note, play(twin), face.note, play(face))
    for each in (env, twin, face):
        each.close()
    """
    assert 4 == len(run_script(url, body))


@pytest.mark.nightly
def test_clients_are_sent_to_ray_actors(url):
    pytest.importorskip("ray")
    body = """
    import logging
    import os
    import warnings

    warnings.simplefilter("ignore")
    os.environ["RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO"] = "0"
    import ray

    ray.init(num_cpus=2, include_dashboard=False, logging_level=logging.ERROR,
             log_to_driver=False)

    @ray.remote(num_cpus=0)
    class Worker:
        def __init__(self, env):
            self.env = env

        def rollout(self, seed):
            return play(self.env, seed)

        async def rollout_async(self, seed):
            return await play_async(self.env, seed)

    env = GridWorldEnv(base_url=URL)
    env.reset()
    workers = [Worker.remote(env) for _ in range(2)]
    print(*ray.get([w.rollout_async.remote(n) for n, w in enumerate(workers)]))
    ray.shutdown()
    env.close()
    """
    assert 2 == len(run_script(url, body, "-Wignore", timeout_s=180))


def test_trio_is_told_what_to_do(url):
    pytest.importorskip("trio")
    body = """
    import trio

    async def main():
        env = GridWorldEnv(base_url=URL)
        step = lambda: env.step(moves(1)[0])
        for use in (env.connect, env.reset, step, env.state, env.new_session):
            try:
                await use()
            except RuntimeError as error:
                assert "not under trio" in str(error), error
            else:
                raise AssertionError(use)
        print(await trio.to_thread.run_sync(play, env.sync()))
        env.sync().close()

    trio.run(main)
    """
    assert 1 == len(run_script(url, body))


def test_a_notebooks_cells(url):
    manager = pytest.importorskip("jupyter_client").manager
    pytest.importorskip("ipykernel")
    cells = [
        f"URL = {url!r}",
        "from openenv import GenericEnvClient",
        "env = GenericEnvClient(URL)",
        "print((await env.reset(seed=1)).done)",  # the notebook's loop runs
        "print((await env.step({'direction': 'up'})).done)",
        "face = GenericEnvClient(URL).sync()",
        "print(face.reset(seed=1).done)",
        "with GenericEnvClient(URL).sync() as other: print(other.reset(seed=1).done)",
        "face.close(); await env.close(); print('closed')",
    ]
    kernel, client = manager.start_new_kernel(kernel_name="python3")
    try:
        printed = [_printed(client, cell) for cell in cells]
    finally:
        client.stop_channels()
        kernel.shutdown_kernel(now=True)
    assert ["False\n"] * 4 + ["closed\n"] == [text for text in printed if text]


def _printed(client, cell):
    texts = []

    def note(message):
        content = message["content"]
        assert message["msg_type"] != "error", content["traceback"]
        if message["msg_type"] == "stream":
            texts.append(content["text"])

    client.execute_interactive(cell, timeout=60, output_hook=note)
    return "".join(texts)


SUITE = """
import pytest
from openenv import GenericEnvClient

CLIENT = GenericEnvClient(URL)

@pytest.mark.asyncio
@pytest.mark.parametrize("n", range(3))
async def test_awaiting(n):
    await CLIENT.reset(seed=n)
    assert not (await CLIENT.step({"direction": "up"})).done

def test_blocking():
    CLIENT.reset(seed=1)
    CLIENT.close()
"""


def test_a_suite_of_pytest_asyncio_with_a_loop_a_test(url, tmp_path):
    (tmp_path / "test_suite.py").write_text(SUITE.replace("URL", repr(url)))
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:randomly", str(tmp_path)]
    done = subprocess.run(
        command, cwd=tmp_path, capture_output=True, text=True, check=False
    )

    assert "4 passed" in done.stdout, done.stdout + done.stderr
