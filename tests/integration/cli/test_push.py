"""`openenv push` and `fork`, with the real huggingface_hub against a local Hub."""

from __future__ import annotations

import pytest
import yaml
from tests.integration.cli.fake_hub import TOKEN, FakeHub, Space
from tests.integration.cli.images import make_wheel
from tests.integration.cli.packages import make_good

pytest.importorskip("huggingface_hub")


@pytest.fixture
def hub():
    fake = FakeHub()
    yield fake
    fake.stop()


@pytest.fixture
def logged_in(openenv, hub, tmp_path):
    """Run a command whose Hub is the local one."""

    def run(*arguments, token=TOKEN, **variables):
        return openenv(
            *arguments,
            HF_ENDPOINT=hub.url,
            HF_HOME=str(tmp_path / "hf"),
            HF_HUB_DISABLE_PROGRESS_BARS="1",
            **({"HF_TOKEN": token} if token else {}),
            **variables,
        )

    return run


def front_matter(space):
    return yaml.safe_load(space.files["README.md"].decode().split("---\n")[1])


def test_a_fresh_package_becomes_a_space(logged_in, hub, tmp_path):
    folder, wheel = make_good("typed", tmp_path), make_wheel(tmp_path)
    with (folder / "openenv.yaml").open("a") as manifest:
        manifest.write("variables: {LEVEL: hard, TRIES: 3}\n")
    (folder / ".env").write_text("PASSWORD=1")
    (folder / "__pycache__").mkdir()
    (folder / "__pycache__" / "x.pyc").touch()

    done = logged_in(
        *("push", "my_env", "--private", "--wheel", wheel, "-H", "t4-medium"),
        *("-e", "LEVEL=easy", "--secret", "KEY=a=b"),
    )

    assert 0 == done.code, done.text
    assert f"{hub.url}/spaces/me/my_env\n" == done.out
    [(name, space)] = hub.spaces.items()
    assert ("me/my_env", True, "t4-medium") == (name, space.private, space.hardware)
    assert {"LEVEL": "easy", "TRIES": "3"} == space.variables
    assert {"KEY": "a=b"} == space.secrets
    assert "a=b" not in done.text
    assert {"Dockerfile", "client.py", f"dist/{wheel.name}"} <= set(space.files)
    assert "server/Dockerfile" not in space.files
    assert not any(".env" == path or "pycache" in path for path in space.files)
    dockerfile = space.files["Dockerfile"].decode().splitlines()
    assert "ENV ENABLE_WEB_INTERFACE=true" == dockerfile[-2]
    matter = front_matter(space)
    assert ("docker", 8000, "/web") == (
        matter["sdk"],
        matter["app_port"],
        matter["base_path"],
    )
    assert (folder / "server" / "Dockerfile").is_file()


def test_a_second_push_updates_and_deletes_what_is_asked(logged_in, hub, tmp_path):
    folder = make_good("typed", tmp_path)
    hub.spaces["team/other"] = Space(files={"old.txt": b"", "keep.md": b""})
    (tmp_path / "ignored").write_text("# not these\ntests/*\n")

    options = ("--delete", "*.txt", "--exclude", "ignored", "--no-interface")
    done = logged_in("push", folder, "-r", "team/other", *options)

    assert 0 == done.code, done.text
    files = hub.spaces["team/other"].files
    assert "old.txt" not in files
    assert "keep.md" in files
    assert not any(path.startswith("tests/") for path in files)
    assert b"ENABLE_WEB_INTERFACE" not in files["Dockerfile"]


def test_a_page_without_front_matter_gets_one(logged_in, hub, tmp_path):
    folder = make_good("typed", tmp_path)
    (folder / "README.md").write_text("# Mine\n")

    assert 0 == logged_in("push", folder).code

    space = hub.spaces["me/my_env"]
    assert ("docker", ["openenv"]) == (
        front_matter(space)["sdk"],
        front_matter(space)["tags"],
    )
    assert space.files["README.md"].endswith(b"# Mine\n")


def test_several_spaces_are_numbered(logged_in, hub, tmp_path):
    done = logged_in("push", make_good("typed", tmp_path), "--count", 2)

    assert 0 == done.code, done.text
    assert {"me/my_env-1", "me/my_env-2"} == set(hub.spaces)
    assert "[1/2] " in done.out
    assert "All 2 instances deployed" in done.out


def test_a_pull_request_leaves_the_space_alone(logged_in, hub, tmp_path):
    hub.spaces["me/my_env"] = Space(files={"old.txt": b""})

    done = logged_in("push", make_good("typed", tmp_path), "--create-pr")

    assert 0 == done.code, done.text
    assert done.out.endswith("/spaces/me/my_env/discussions/1\n")
    assert {"old.txt"} == set(hub.spaces["me/my_env"].files)


def test_an_upload_that_is_cut_is_sent_again(logged_in, hub, tmp_path):
    hub.cut_next_commit = True

    done = logged_in("push", make_good("typed", tmp_path))

    assert 0 == done.code, done.text
    assert 2 == sum("/commit/" in path for _, path in hub.calls)
    assert "client.py" in hub.spaces["me/my_env"].files


def test_an_upload_that_is_refused_says_what_is_there_and_what_to_do(
    logged_in, hub, tmp_path
):
    folder = make_good("typed", tmp_path)
    hub.refuses_commits = True

    done = logged_in("push", folder)

    assert 1 == done.code, done.text
    assert "Error: the upload failed: the quota is used up (HTTP 403)" in done.err
    assert "nothing of the Space was changed; run the same command again" in done.err
    assert {} == hub.spaces["me/my_env"].files


def test_who_is_not_logged_in_is_told_what_to_do(logged_in, hub, tmp_path):
    done = logged_in("push", make_good("typed", tmp_path), token=None)

    assert 2 == done.code
    assert "nobody is logged in at the Hub: run `hf auth login`" in done.text
    assert [] == hub.calls


def test_a_wrong_token_is_one_sentence(logged_in, tmp_path):
    done = logged_in("push", make_good("typed", tmp_path), token="hf_old")

    assert 1 == done.code
    assert "asking the Hub who you are failed: " in done.text
    assert 1 == done.err.count("\n"), done.err


@pytest.mark.parametrize(
    ("command", "page"),
    [
        (["push", "my_env"], "<html>Welcome</html>"),
        (["fork", "a/b"], "<html>Welcome</html>"),
        (["fork", "a/b"], "[]"),
        (["fork", "a/b"], "{}"),
    ],
)
def test_a_server_that_is_no_hub_is_one_sentence(
    logged_in, hub, tmp_path, command, page
):
    make_good("typed", tmp_path)
    hub.page = page

    done = logged_in(*command)

    assert 1 == done.code
    assert f"asking the Hub who you are failed: {hub.url} gave no answer" in done.text
    assert "is this the Hub?" in done.text
    assert 1 == done.err.count("\n"), done.err


def test_a_space_of_somebody_else_is_refused(logged_in, tmp_path):
    done = logged_in("push", make_good("typed", tmp_path), "-r", "other/x")

    assert 1 == done.code
    assert "making the Space other/x failed: " in done.text
    assert "403" in done.text


@pytest.mark.parametrize(
    ("options", "code", "words"),
    [
        (["--count", "2", "--registry", "r"], 1, "--count makes Spaces"),
        (["--count", "2", "--create-pr"], 1, "--count makes Spaces"),
        (["--secret", "hush"], 2, "--secret must be KEY=VALUE, got <redacted>"),
        (["-e", "1A=x"], 2, "--env-var must be KEY=VALUE, got '1A=x'"),
        (["-e", "A=x", "--registry", "r"], 2, "not with --registry"),
        (["-r", "a/b", "--registry", "r"], 2, "--repo-id names a Space"),
        (["--registry", "r:x"], 2, "invalid tag 'r:x/my_env'"),
        (["-r", "a/b/c"], 2, "--repo-id must be NAME or OWNER/NAME"),
        (["--exclude", "nope"], 2, "there is no such file"),
    ],
)
def test_a_mistake_is_one_sentence(logged_in, hub, tmp_path, options, code, words):
    make_good("typed", tmp_path)

    done = logged_in("push", "my_env", *options)

    assert code == done.code, done.text
    assert words in done.text
    assert "hush" not in done.text
    assert {} == hub.spaces


@pytest.mark.parametrize(("folder", "code"), [("nowhere", 2), ("empty", 1)])
def test_a_folder_that_is_no_environment_has_upstreams_code(
    openenv_here, tmp_path, folder, code
):
    (tmp_path / "empty").mkdir()

    done = openenv_here("push", folder)

    assert code == done.code
    assert {2: "nowhere is no folder", 1: "no openenv.yaml"}[code] in done.text


def test_a_package_that_is_not_ready_is_not_sent(logged_in, hub, tmp_path):
    folder = make_good("typed", tmp_path)
    (folder / "server" / "Dockerfile").unlink()

    done = logged_in("push", folder)

    assert 2 == done.code
    assert "the package is not ready: docker.exists: " in done.text
    assert [] == hub.calls


def test_a_space_is_forked_with_what_it_needs(logged_in, hub):
    hub.spaces["org/game"] = Space(files={"a": b"1"})

    done = logged_in("fork", "org/game", "-r", "mine", "-e", "A=1", "-s", "B=2")

    assert 0 == done.code, done.text
    copy = hub.spaces["me/mine"]
    assert ({"A": "1"}, {"B": "2"}, {"a": b"1"}) == (
        copy.variables,
        copy.secrets,
        copy.files,
    )
    assert f"{hub.url}/spaces/me/mine" in done.out


@pytest.mark.parametrize(
    ("source", "code", "words"),
    [
        ("game", 2, "must be OWNER/SPACE, got 'game'"),
        ("a/b/c", 2, "must be OWNER/SPACE"),
        ("org/none", 1, "the fork failed: "),
    ],
)
def test_a_fork_that_cannot_be_is_one_sentence(logged_in, source, code, words):
    done = logged_in("fork", source)

    assert code == done.code, done.text
    assert words in done.text
