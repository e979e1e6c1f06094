"""Images are pushed to a real registry on this machine: Debian's `docker-registry`."""

from __future__ import annotations

import json
import shutil
import urllib.request
import uuid

import pytest
from tests.integration.cli.images import make_wheel, sleep_instead
from tests.integration.cli.packages import make_good
from tests.integration.cli.test_serve import free_port
from tests.support.processes import ChildProcess, wait_until

REGISTRY = shutil.which("docker-registry")
MANIFEST = "application/vnd.docker.distribution.manifest.v2+json"
CONFIGURATION = """\
version: 0.1
log: {{level: error}}
storage:
  filesystem: {{rootdirectory: {folder}}}
http: {{addr: "127.0.0.1:{port}"}}
"""

pytestmark = [
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        REGISTRY is None,
        reason="docker-registry is not installed (apt-get install docker-registry)",
    ),
]


@pytest.fixture
def registry(engine, tmp_path):
    """A registry of this test's own; gives its `localhost:PORT`."""
    del engine
    port = free_port()
    file = tmp_path / "registry.yml"
    text = CONFIGURATION.format(folder=tmp_path / "registry", port=port)
    file.write_text(text)
    with ChildProcess([REGISTRY, "serve", str(file)]) as child:
        address = f"localhost:{port}"
        wait_until(lambda: catalog(address) is not None, 20.0, child.output)
        yield address


@pytest.fixture
def image(engine, registry):
    """The name under which the tests push; the engine forgets it."""
    name = f"{registry}/tests-{uuid.uuid4().hex[:8]}/my_env"
    yield name
    for each in engine.images.list(name):
        engine.images.remove(each.id, force=True)


def read(address, path, accept="*/*"):
    request = urllib.request.Request(
        f"http://{address}/v2/{path}", headers={"Accept": accept}
    )
    with urllib.request.urlopen(request, timeout=10) as answer:
        return json.load(answer)


def catalog(address):
    try:
        return read(address, "_catalog")["repositories"]
    except OSError:
        return None


def labels_in(registry, name, tag):
    manifest = read(registry, f"{name}/manifests/{tag}", MANIFEST)
    blob = manifest["config"]["digest"]
    return read(registry, f"{name}/blobs/{blob}")["config"]["Labels"]


def test_a_build_is_pushed_and_can_be_pulled(
    openenv, engine, base, registry, image, tmp_path
):
    folder = make_good("msgspec", tmp_path)
    sleep_instead(folder, base)

    done = openenv("build", folder, "--tag", f"{image}:1", "--push", timeout_s=250)

    assert 0 == done.code, done.text
    assert done.out.endswith(", pushed\n")
    name = image.partition("/")[2]
    assert [name] == catalog(registry)
    assert "my_env" == labels_in(registry, name, "1")["openenv.name"]
    engine.images.remove(f"{image}:1", force=True)
    assert "8000" == engine.images.pull(image, "1").labels["openenv.port"]


def test_push_to_a_registry_names_the_image_after_the_manifest(
    openenv, base, registry, image, tmp_path
):
    folder, wheel = make_good("typed", tmp_path), make_wheel(tmp_path)
    place = image.rpartition("/")[0]
    options = ("--base-image", base, "--wheel", wheel)

    done = openenv("push", folder, "--registry", place, *options, timeout_s=250)

    assert 0 == done.code, done.text
    assert image in done.out
    name = image.partition("/")[2]
    assert "my_env" == labels_in(registry, name, "latest")["openenv.name"]


def test_a_registry_that_does_not_answer_is_told(openenv, base, tmp_path):
    folder = make_good("typed", tmp_path)
    sleep_instead(folder, base)
    address = f"localhost:{free_port()}"
    tag = f"{address}/nobody/my_env:1"

    done = openenv("build", folder, "--tag", tag, "--push", timeout_s=250)

    assert 1 == done.code, done.text
    assert "Error: the push failed; the last output:" in done.err
    assert "refused" in done.err
