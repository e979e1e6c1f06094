"""Consoles, disks, names and files that nobody wishes for: a sentence, no traceback."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest
from tests.integration.cli.packages import make_good
from tests.support.processes import ChildProcess, wait_until

ENCODINGS = ["cp1252", "cp437"]
of_encodings = pytest.mark.parametrize("encoding", ENCODINGS)


@of_encodings
@pytest.mark.parametrize("command", ["--help", "push --help", "nope", "schema"])
def test_a_console_of_few_characters_can_show_it(openenv, command, encoding):
    done = openenv(*command.split(), PYTHONIOENCODING=encoding)

    assert (2 if command == "nope" else 0) == done.code
    (done.out + done.err).encode(encoding)


@of_encodings
def test_names_that_a_console_has_not_are_told_by_numbers(openenv, tmp_path, encoding):
    folder = make_good("typed", tmp_path)
    manifest = folder / "openenv.yaml"
    text = manifest.read_text().replace("port: 8000", "port: \N{HIRAGANA LETTER A}")
    manifest.write_text(text)
    told = {
        ("validate", "my_env", "--level", "static", "-v"): 1,
        ("list",): 0,
        ("build", "my_env"): 1,
        ("init", "my_env", "-o", "\N{HIRAGANA LETTER A}"): 0,
        ("serve", "\N{HIRAGANA LETTER A}"): 2,
        ("rollout", "\N{HIRAGANA LETTER A}"): 2,
    }

    for command, code in told.items():
        done = openenv(*command, PYTHONIOENCODING=encoding)
        assert code == done.code, done.text
        assert command == ("list",) or "\\u3042" in done.out + done.err, done.text


@pytest.mark.skipif(sys.platform != "linux", reason="names are Unicode elsewhere")
def test_a_path_that_is_no_text_can_be_told(openenv, tmp_path):
    name = os.fsdecode(b"b\xff")

    made = openenv("init", "my_env", "-o", tmp_path / name)
    listed = openenv("list", cwd=tmp_path / name)
    (tmp_path / name / "my_env" / "client.py").unlink()
    checked = openenv("validate", tmp_path / name / "my_env", "--level", "static")
    missing = openenv("serve", name)

    assert [0, 0, 1, 2] == [made.code, listed.code, checked.code, missing.code]
    assert "b\\udcff/my_env/client.py" in made.out
    assert "my_env" in listed.out
    assert "missing: client.py" in checked.out
    assert "b\\udcff" in missing.err


@pytest.mark.parametrize(
    "command", ["schema", "--help", "list", "validate my_env -v --level static"]
)
def test_a_pipe_that_is_closed_early_is_no_traceback(tmp_path, command):
    make_good("typed", tmp_path)

    done = subprocess.run(
        f"{sys.executable} -m openenv.cli {command} | head -1",
        shell=True,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=50,
    )

    assert 0 == done.returncode
    assert done.stdout
    assert "" == done.stderr


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")  # noqa: PTH110
def test_a_full_disk_is_one_sentence(openenv, tmp_path):
    make_good("typed", tmp_path)
    (tmp_path / "full").symlink_to("/dev/full")

    report = openenv("validate", "my_env", "--level", "static", "--output", "full")
    for command in ("schema", "list"):
        done = subprocess.run(
            f"{sys.executable} -m openenv.cli {command} > /dev/full",
            shell=True,
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
        )
        assert 1 == done.returncode
        assert "Error: No space left on device\n" == done.stderr
    assert 1 == report.code
    assert "No space left on device" in report.err


def test_nothing_of_the_users_home_is_needed(openenv, tmp_path):
    make_good("typed", tmp_path)

    done = openenv("list", HOME="", XDG_CONFIG_HOME="", TERM="", LANG="nonsense")

    assert 0 == done.code
    assert "my_env" in done.out


@pytest.mark.parametrize(
    "manifest",
    [
        "[" * 500,
        "a: &a [*a]\n",
        "spec_version: 1\nname: my_env\na0: &a0 [x, x]\n"
        + "".join(
            f"a{i}: &a{i} [{', '.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 12)
        ),
    ],
    ids=["deep", "in itself", "billions"],
)
def test_a_manifest_that_grows_is_one_sentence(openenv_here, tmp_path, manifest):
    folder = make_good("typed", tmp_path)
    (folder / "openenv.yaml").write_text(manifest)

    checked = openenv_here("validate", "my_env", "--level", "static")
    listed = openenv_here("list")
    built = openenv_here("build", "my_env")

    assert [1, 0, 1] == [checked.code, listed.code, built.code]
    assert "too large, nested too deeply or contains itself" in checked.text
    assert "openenv.yaml has errors" in listed.text
    assert "nested too deeply" in built.text


def test_a_manifest_that_is_a_folder_hides_no_other_environment(openenv_here, tmp_path):
    make_good("typed", tmp_path)
    (tmp_path / "other" / "openenv.yaml").mkdir(parents=True)

    done = openenv_here("list")

    assert 0 == done.code
    assert "my_env my_env server.app:app" in done.text
    assert "other other openenv.yaml cannot be read: Is a directory" in done.text


def test_a_long_path_stays_on_one_line_of_a_pipe(openenv_here, tmp_path):
    folder = tmp_path / "envs" / ("x" * 90 + "_env")
    make_good("typed", tmp_path).rename(tmp_path / "my_env2")
    folder.parent.mkdir()
    (tmp_path / "my_env2").rename(folder)
    (folder / "client.py").unlink()

    listed = openenv_here("list")
    checked = openenv_here("validate", folder, "--level", "static")

    assert any(
        f"envs/{folder.name}" in line and "server.app:app" in line
        for line in listed.out.splitlines()
    )
    assert "       missing: client.py\n" in checked.out


@pytest.mark.parametrize(
    "code",
    [
        "import os, time\nif os.fork() == 0:\n    time.sleep(600)\n",
        "import sys\nfor _ in range(20_000):\n    print('x' * 100)\n",
    ],
    ids=["forks", "prints megabytes"],
)
def test_a_strange_import_does_not_hold_validation_up(openenv, tmp_path, code):
    folder = make_good("typed", tmp_path)
    path = folder / "server" / "app.py"
    path.write_text(f"{path.read_text()}\n{code}")

    done = openenv("validate", "my_env", "--timeout", "45", timeout_s=40)

    assert 0 == done.code, done.text
    assert "my_env is valid" in done.text


@pytest.mark.parametrize(
    ("command", "place"),
    [
        (["validate", "my_env"], "app.py"),
        (["serve", "my_env", "-p", "0"], "app.py"),
        (["serve", "my_env", "-p", "0", "--workers", "2"], "app.py"),
        (["rollout", "my_env"], "app.py"),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else each,
)
def test_ctrl_c_during_an_import_is_130_and_leaves_nothing(tmp_path, command, place):
    folder = make_good("typed", tmp_path)
    path = folder / "server" / place
    mark = tmp_path / "begun"
    path.write_text(
        f"import os, pathlib, time\n"
        f"pathlib.Path({str(mark)!r}).write_text(str(os.getpid()))\n"
        f"time.sleep(600)\n{path.read_text()}"
    )
    arguments = [sys.executable, "-m", "openenv.cli", *command]

    with ChildProcess(arguments, cwd=tmp_path) as child:
        wait_until(lambda: mark.exists() and mark.read_text(), 30.0)
        child.send_signal(signal.SIGINT)
        code = child.wait(20.0)
        output = child.output()

    assert 130 == code, output
    assert "Traceback" not in output
    wait_until(lambda: not is_running(int(mark.read_text())), 10.0)


def is_running(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
