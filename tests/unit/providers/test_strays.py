"""Strays on an engine that refuses."""

from __future__ import annotations

import logging
import types

import docker.errors
import pytest
from tests.unit.providers.test_owner import labels_of_a_dead_process

from openenv.core.containers.runtime.strays import remove_strays_of


class Api:
    """Have three strays, of which the second one cannot be removed."""

    def __init__(self, refusal):
        self.removed, self._refusal = [], refusal

    def containers(self, **_):
        labels = labels_of_a_dead_process()
        return [
            {"Id": id_, "Names": [f"/{id_}"], "Image": "echo", "Labels": labels}
            for id_ in ("first", "second", "third")
        ]

    def remove_container(self, id_, **_):
        if id_ == "second":
            raise self._refusal
        self.removed.append(id_)


@pytest.mark.parametrize(
    "refusal",
    [
        docker.errors.APIError("device or resource busy"),
        docker.errors.DockerException("connection lost"),
    ],
)
def test_one_that_cannot_be_removed_is_told_and_the_others_are(caplog, refusal):
    api = Api(refusal)
    client = types.SimpleNamespace(api=api, info=dict)
    with caplog.at_level(logging.WARNING):
        removed = remove_strays_of(client)  # type: ignore[arg-type]

    assert ["first", "third"] == api.removed == [stray.name for stray in removed]
    assert f"cannot remove stray container second: {refusal}" in caplog.messages
