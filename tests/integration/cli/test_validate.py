"""`openenv validate`: broken packages are blamed for their fault and nothing else."""

from __future__ import annotations

import json
import re
import socket
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress

import pytest
from tests.integration.cli.packages import (
    CODE,
    FILES,
    GOOD,
    HANGING,
    make_broken,
    make_good,
    replace,
)
from tests.support.processes import ROOT, ChildProcess

from openenv.cli.validation.checks import Verdict, run_checks
from openenv.cli.validation.package import PACKAGE_CHECKS, Package
from openenv.cli.validation.probe import PROBE_CHECKS, probe

GRID_WORLD = ROOT / "envs" / "grid_world_env"
ECHO = ROOT / "envs" / "echo_env"
BAD = (Verdict.WARN, Verdict.FAIL)
# Importing a server takes seconds where other tests run beside.
SECONDS = 50.0
HANGING_SECONDS = 15.0


def of(table):
    return pytest.mark.parametrize("broken", table, ids=[each.name for each in table])


def findings_of_files(folder):
    found = []
    run_checks(PACKAGE_CHECKS, Package(folder), found.append)
    return [each for each in found if not isinstance(each, str)]


def findings_of_code(folder, seconds=SECONDS):
    found = []
    probe(folder, Package(folder).manifest, seconds, found.append)
    findings = [each for each in found if not isinstance(each, str)]
    assert PROBE_CHECKS == tuple(each.check for each in findings)
    return findings


def bad(findings):
    return [each for each in findings if each.verdict in BAD]


@of(FILES)
def test_a_fault_of_a_file_is_named_and_no_other(tmp_path, broken):
    folder = make_broken(broken, tmp_path)

    [finding] = bad(findings_of_files(folder))

    assert broken.check == finding.check
    assert broken.words in finding.why
    assert finding.mend


@of(CODE)
def test_a_fault_of_the_code_is_named_and_no_other(tmp_path, broken):
    folder = make_broken(broken, tmp_path)

    assert [] == bad(findings_of_files(folder))
    [finding] = bad(findings_of_code(folder))

    assert broken.check == finding.check
    assert broken.words in finding.why
    assert finding.mend


def test_code_that_hangs_is_blamed_and_stopped(tmp_path):
    """They only wait: side by side they take as long as one."""
    folders = []
    for number, broken in enumerate(HANGING):
        (tmp_path / str(number)).mkdir()
        folders.append(make_broken(broken, tmp_path / str(number)))

    with ThreadPoolExecutor() as threads:
        found = list(
            threads.map(lambda each: findings_of_code(each, HANGING_SECONDS), folders)
        )

    for broken, findings in zip(HANGING, found, strict=True):
        [finding] = bad(findings)
        assert broken.check == finding.check
        assert broken.words in finding.why


def test_a_package_of_the_same_name_where_the_command_is_run_is_not_taken(
    openenv_here, tmp_path
):
    [broken] = [each for each in CODE if each.name == "steps are not counted"]
    make_good("typed", tmp_path)
    (tmp_path / "other").mkdir()
    folder = make_broken(broken, tmp_path / "other")

    done = openenv_here("validate", folder)

    assert 1 == done.code, done.text
    assert broken.words in done.text


def test_a_failed_step_is_told_with_its_line(openenv, tmp_path):
    [broken] = [each for each in CODE if each.name == "observation of a wrong type"]

    done = openenv("validate", make_broken(broken, tmp_path))

    assert re.search(r"environment\.py:\d+: ValidationError: 1 validation", done.text)
    assert "\n         Input should be" in done.out
    assert "pydantic.dev" not in done.text


def test_a_child_that_is_stopped_before_its_first_word_is_not_valid(openenv, tmp_path):
    folder = make_good("typed", tmp_path)

    done = openenv("validate", folder, "--timeout", "0.1")

    assert 1 == done.code, done.text
    assert 1 == done.out.count("fail ")
    assert "not done within 0.1 s" in done.text


@pytest.mark.parametrize("shape", GOOD)
def test_a_good_package_is_not_blamed(tmp_path, shape):
    folder = make_good(shape, tmp_path)

    assert [] == bad(findings_of_files(folder))
    findings = findings_of_code(folder)

    assert [] == bad(findings)
    played = [each for each in findings if each.check == "contract.seed"]
    assert Verdict.PASS is played[0].verdict, played


@pytest.mark.parametrize("folder", [GRID_WORLD, ECHO], ids=lambda each: each.name)
def test_our_environments_pass_strictly(openenv, folder):
    done = openenv("validate", folder, "--strict")

    assert 0 == done.code, done.text
    # Grid world has no tools, and echo's episodes, of tools, have no end.
    assert f"{folder.name} is valid: 37 passed" in done.out
    assert 1 == done.out.count("\n")


def test_only_tools_that_cannot_be_drawn_leave_the_contract_out(tmp_path):
    folder = make_good("mcp", tmp_path)
    edit = replace(
        "server/environment.py",
        "number: Annotated[int, Field(ge=LOWEST, le=HIGHEST)]",
        'number: Annotated[str, Field(pattern="^x$")]',
    )
    edit(folder)

    findings = {each.check: each for each in findings_of_code(folder)}

    assert Verdict.SKIP is findings["contract.tools"].verdict
    assert "no tool whose calls can be drawn" in findings["contract.tools"].why
    assert "needs contract.tools" == findings["contract.reset"].why


@pytest.mark.parametrize(
    "text",
    [
        "try:\n    import requests\nexcept ImportError:\n    requests = None\n",
        "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import requests\n",
        "import pydantic_core, starlette.routing, openenv_core\n",
        "from . import environment\nimport models, my_env.client, environment\n",
        "def late():\n    import requests\n",
    ],
)
def test_these_imports_need_no_dependency(tmp_path, text):
    folder = make_good("typed", tmp_path)
    (folder / "server" / "more.py").write_text(text)

    assert [] == bad(findings_of_files(folder))


def test_a_fault_is_told_with_its_mend_and_fails(openenv_here, tmp_path):
    folder = make_good("typed", tmp_path)
    (folder / "server" / "Dockerfile").unlink()

    done = openenv_here("validate", folder, "--level", "static")

    assert 1 == done.code
    assert "fail docker.exists" in done.text
    assert "mend: " in done.text
    assert "my_env is not valid" in done.text


@pytest.mark.parametrize(("strict", "code"), [(False, 0), (True, 1)])
def test_a_warning_fails_strictly_only(openenv_here, tmp_path, strict, code):
    folder = make_good("typed", tmp_path)
    with (folder / "openenv.yaml").open("a") as manifest:
        manifest.write("more: 1\n")

    done = openenv_here("validate", folder, "--level=static", *["--strict"] * strict)

    assert code == done.code
    assert "warn manifest.keys" in done.text


def test_the_report_is_json(openenv_here, tmp_path):
    make_good("typed", tmp_path)

    done = openenv_here(
        *("validate", "my_env", "--level", "static", "--json", "--output", "r.json")
    )

    report = json.loads(done.out)
    assert json.loads((tmp_path / "r.json").read_text()) == report
    assert (True, "my_env") == (report["passed"], report["target"])
    assert {"check", "verdict", "why", "mend"} == set(report["checks"][0])
    assert len(PACKAGE_CHECKS) == sum(report["summary"].values())


@pytest.mark.parametrize(
    "text",
    [
        "ENV PORT=8000\nCMD python -m my_env.server.app --port $PORT",
        "ARG PORT=8000\nCMD python -m my_env.server.app --port ${PORT}",
        "CMD python -m my_env.server.app --port ${PORT:-8000} $HOME",
        "COPY --from=builder ../x /y\nCMD python -m my_env.server.app",
        "COPY . ../y\nCMD python -m my_env.server.app",
        "EXPOSE 7860 8000\nEXPOSE $PORT\nCMD python -m my_env.server.app",
        "CMD PORT=8000; export PORT; python -m my_env.server.app --port $PORT",
        "expose 8000\nONBUILD RUN x\nCMD exec python -m my_env.server.app",
    ],
)
def test_a_good_dockerfile_is_not_blamed(tmp_path, text):
    folder = make_good("typed", tmp_path)
    base = "FROM python:3.11-slim\nRUN pip install .\n"
    (folder / "server" / "Dockerfile").write_text(f"{base}{text}\n")

    assert [] == bad(findings_of_files(folder))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["nowhere"], "nowhere is no folder"),
        ([".", "--url", "http://localhost:1"], "not both"),
        (["http://a:1", "--url", "http://b:1"], "two URLs"),
        (["--url", "ftp://a"], "is no URL of a server"),
        (["--url", "http://local host"], "is no URL of a server"),
        (["--url", "http://a\tb:1"], "is no URL of a server"),
        (["--url", "http://a:99999"], "is no URL of a server"),
        (["--url", "http://a:b"], "is no URL of a server"),
        (["--url", "http://[::1"], "is no URL of a server"),
        (["--url", "http://ä:1"], "is no URL of a server"),
        (["--timeout", "0"], "0.1"),
        (["--level", "nope"], "'nope' is not one of"),
    ],
)
def test_wrong_use_is_told_and_code_2(openenv_here, arguments, words):
    done = openenv_here("validate", *arguments)

    assert 2 == done.code
    assert words in done.text


@pytest.mark.parametrize(
    ("folder", "tools"), [(GRID_WORLD, "skip"), (ECHO, "pass")], ids=["grid", "echo"]
)
def test_a_running_server_is_checked_through_its_url(openenv, folder, tools):
    with serve(folder) as url:
        done = openenv("validate", "--url", url, "-v", "--strict")

    assert 0 == done.code, done.text
    assert "pass http.routes" in done.text
    assert f"{tools} contract.tools" in re.sub(" +", " ", done.text)
    assert "pass contract.sessions" in re.sub(" +", " ", done.text)


def test_a_running_server_is_blamed_for_its_environment(openenv, tmp_path):
    [broken] = [each for each in CODE if each.name == "steps are not counted"]
    with serve(make_broken(broken, tmp_path)) as url:
        done = openenv("validate", url)

    assert 1 == done.code
    assert 1 == done.out.count("fail ")
    assert broken.words in done.text


def test_a_url_where_nobody_answers_is_one_fault(openenv_here):
    done = openenv_here("validate", "http://127.0.0.1:9")

    assert 1 == done.code
    assert 1 == done.out.count("fail ")
    assert "fail http.health" in done.text
    assert "refused" in done.text


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ([b"HTTP/1.1 200 OK\r\n", *[b"A: b\r\n"] * 200], "not answered within 1 s"),
        ([b"no protocol at all\r\n"], "no protocol at all"),
        ([b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{"], "no JSON"),
    ],
    ids=["drips", "no HTTP", "too short"],
)
def test_a_server_that_answers_badly_is_one_fault_in_time(openenv_here, lines, words):
    with bad_server(lines) as url:
        started_s = time.monotonic()
        done = openenv_here("validate", url, "--timeout", "1")

    assert time.monotonic() - started_s < 8
    assert 1 == done.code
    assert 1 == done.out.count("fail ")
    assert words in done.text


@contextmanager
def bad_server(lines):
    """Answer the first question with these lines, one each tenth of a second."""
    ended = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def answer():
            connection, _ = listener.accept()
            with connection, suppress(OSError):
                connection.recv(10_000)
                for line in lines:
                    connection.sendall(line)
                    if ended.wait(0.1):
                        return

        thread = threading.Thread(target=answer)
        thread.start()
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
        ended.set()
        thread.join()


@contextmanager
def serve(folder):
    """Serve a folder on a free port."""
    command = [sys.executable, "-m", "openenv.cli", "serve", str(folder), "-p", "0"]
    with ChildProcess(command, environment={"COLUMNS": "80"}) as child:
        yield child.wait_for_line(r"(http://127\.0\.0\.1:\d+)").group(1)
