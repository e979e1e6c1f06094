"""Types, interfaces, transforms and settings."""

# ruff: noqa: ARG002 - the signatures are those of the base classes

from __future__ import annotations

import pytest
from pydantic import TypeAdapter, ValidationError

from openenv.core.env_server._config import read_settings
from openenv.core.env_server._dispatch import Features
from openenv.core.env_server._wire_errors import (
    InvalidJsonText,
    close_code,
    error_data,
    loads,
)
from openenv.core.env_server.base_transforms import CompositeTransform, NullTransform
from openenv.core.env_server.http_server import HTTPEnvServer
from openenv.core.env_server.interfaces import (
    Environment,
    Transform,
    overrides_method,
)
from openenv.core.env_server.mcp_types import JsonRpcErrorCode, JsonRpcResponse
from openenv.core.env_server.serialization import (
    deserialize_action_with_preprocessing,
    serialize_observation,
)
from openenv.core.env_server.types import (
    Action,
    ConcurrencyConfig,
    Observation,
    ServerCapacityStatus,
    State,
    WSErrorCode,
    WSIncomingMessage,
    WSStepMessage,
)
from openenv.errors import (
    ConcurrencyConfigurationError,
    EnvironmentFactoryError,
    SessionCapacityError,
)


class Still(Environment):
    def reset(self, seed=None, episode_id=None, **kwargs):
        return Observation(metadata={"seed": seed, "id": episode_id, **kwargs})

    def step(self, action, timeout_s=None, **kwargs):
        return Observation(metadata={"timeout_s": timeout_s, **kwargs})

    @property
    def state(self):
        return State()


class Concurrent(Still):
    SUPPORTS_CONCURRENT_SESSIONS = True


def concurrent_factory():
    return Concurrent()


async def test_the_async_methods_call_the_sync_ones_unless_overridden():
    environment = Still()
    reset = await environment.reset_async(1, "e", level=2)
    step = await environment.step_async(Action(), timeout_s=3)

    assert {"seed": 1, "id": "e", "level": 2} == reset.metadata
    assert {"timeout_s": 3} == step.metadata
    assert not overrides_method(environment, "step_async")
    assert not overrides_method(Still, "step_async")


def test_functions_set_on_the_instance_count_as_overrides():
    environment = Still()
    environment.step_async = lambda action: action

    assert overrides_method(environment, "step_async")
    assert not overrides_method(object(), "step_async")


def test_transforms_are_applied_in_order():
    class Add(Transform):
        def __init__(self, text):
            self.text = text

        def __call__(self, observation):
            return observation + self.text

    both = CompositeTransform([Add("a"), NullTransform(), Add("b")])

    assert "xab" == both("x")
    assert "xab" == Still(transform=both)._apply_transform("x")
    assert "x" == Still()._apply_transform("x")


async def test_rubrics_score_and_are_reset_sync_or_async():
    class Rubric:
        resets = 0

        def __call__(self, action, observation):
            return 0.5

        def reset(self):
            self.resets += 1

    class AsyncRubric(Rubric):
        async def __call__(self, action, observation):
            return 0.25

        async def reset_async(self):
            self.resets += 10

    scores, resets = [], []
    for rubric in (Rubric(), AsyncRubric()):
        environment = Still(rubric=rubric)
        scores.append(await environment._apply_rubric_async(None, None))
        await environment._reset_rubric_async()
        environment._reset_rubric()
        resets.append(rubric.resets)

    assert [0.5, 0.25] == scores
    assert [2, 11] == resets
    assert 0.5 == Still(rubric=Rubric())._apply_rubric(None, None)
    assert 0.0 == Still()._apply_rubric(None, None)
    assert 0.0 == await Still()._apply_rubric_async(None, None)


def test_base_models_refuse_and_allow_what_upstreams_do():
    assert 3 == State(extra=3).extra
    for model in (Action, Observation):
        with pytest.raises(ValidationError):
            model(extra=3)
    with pytest.raises(ValidationError):
        State(step_count=-1)


def test_incoming_messages_are_told_apart_by_type():
    adapter = TypeAdapter(WSIncomingMessage)

    assert WSStepMessage(data={}) == adapter.validate_python(
        {"type": "step", "data": {}}
    )


def test_capacity_counts():
    status = ServerCapacityStatus.from_counts(3, 4)

    assert (1, False) == (status.available_slots, status.is_at_capacity)
    with pytest.raises(ValidationError):
        ServerCapacityStatus.from_counts(5, 4)


def test_serialize_observation_keeps_metadata_twice():
    data = serialize_observation(Observation(reward=1.0, metadata={"k": 1}))

    assert {"metadata": {"k": 1}} == data["observation"]
    assert {"k": 1} == data["metadata"]
    assert "metadata" not in serialize_observation(Observation())


def test_preprocessing_decodes_the_texts_of_a_web_form():
    class Choose(Action):
        action_id: int
        tokens: tuple[int, ...] = ()

    call = {"type": "call_tool", "tool_name": "t", "arguments": '{"a":1}'}
    made = deserialize_action_with_preprocessing(call, Action)
    chosen = deserialize_action_with_preprocessing({"action_id": "7"}, Choose)

    assert {"a": 1} == made.arguments
    assert 7 == chosen.action_id


def test_json_rpc_responses_have_a_result_or_an_error():
    response = JsonRpcResponse.error_response(JsonRpcErrorCode.PARSE_ERROR)
    expected = {"code": -32700, "message": "Parse error", "data": None}

    assert {"jsonrpc": "2.0", "id": None, "error": expected} == response.model_dump()
    assert '{"jsonrpc":"2.0","id":1,"result":null}' == (
        JsonRpcResponse.success(None, 1).model_dump_json()
    )
    with pytest.raises(ValidationError):
        JsonRpcResponse(result=1, error={"code": 1, "message": "m"})


# -- the server's arguments ------------------------------------------------------


def test_an_instance_in_place_of_a_class_is_refused():
    with pytest.raises(TypeError, match="must be a callable"):
        HTTPEnvServer(Still(), Action, Observation)


def test_two_limits_are_refused():
    with pytest.raises(ValueError, match="Cannot specify both"):
        HTTPEnvServer(Still, Action, Observation, 1, ConcurrencyConfig())


def test_no_sessions_at_all_is_refused():
    with pytest.raises(ValidationError, match="max_concurrent_envs"):
        HTTPEnvServer(Still, Action, Observation, 0)


def test_several_sessions_need_the_flag_of_class_or_factory():
    def factory():
        return Still()

    for env in (Still, factory):
        with pytest.raises(ConcurrencyConfigurationError) as refused:
            HTTPEnvServer(env, Action, Observation, 2)
        assert "Still" == refused.value.environment_name
    for env in (Concurrent, concurrent_factory):
        server = HTTPEnvServer(env, Action, Observation, 2)
        assert (2, True) == (server.max_concurrent_envs, server.is_concurrency_safe)


def test_the_variable_overrides_the_limit_where_the_class_allows_it(
    monkeypatch, caplog
):
    monkeypatch.setenv("OPENENV_MAX_CONCURRENT_ENVS", "500")

    assert 500 == HTTPEnvServer(Concurrent, Action, Observation).max_concurrent_envs
    assert 1 == HTTPEnvServer(Still, Action, Observation).max_concurrent_envs
    assert "has no effect" in caplog.text
    caplog.clear()
    function = HTTPEnvServer(concurrent_factory, Action, Observation)
    assert 500 == function.max_concurrent_envs
    assert "" == caplog.text


@pytest.mark.parametrize("text", ["0", "-1", "many", "1.5"])
def test_a_variable_that_is_no_positive_integer_is_refused(monkeypatch, text):
    monkeypatch.setenv("OPENENV_MAX_CONCURRENT_ENVS", text)
    with pytest.raises(ValueError, match="must be a positive integer"):
        read_settings()


def test_capacity_and_sessions_can_be_asked_for():
    server = HTTPEnvServer(Concurrent, Action, Observation, 4, env_name="n")

    assert (0, 4) == (server.active_sessions, server.get_capacity_status().max_sessions)
    assert None is server.get_session_info("nobody")
    assert ("n", 4) == (server.env_name, server.concurrency_config.max_concurrent_envs)


# -- errors on the wire ----------------------------------------------------------


def test_close_codes_tell_why():
    errors = {
        SessionCapacityError(1, 1): 1013,
        EnvironmentFactoryError("f"): 1011,
        RuntimeError("ours"): 1011,
    }

    assert list(errors.values()) == [close_code(error) for error in errors]
    assert WSErrorCode.SESSION_ERROR == error_data(RuntimeError())["code"]
    assert "RuntimeError" == error_data(RuntimeError())["message"]


@pytest.mark.parametrize("text", ["", "{", b"\xff", "[" * 100_000, "1" * 5000])
def test_all_that_json_refuses_is_invalid_json(text):
    with pytest.raises(InvalidJsonText):
        loads(text)


def test_features_are_read_whatever_their_spelling():
    assert Features() == Features.parse("")
    assert Features(ignored=True, nonfinite=True) == Features.parse(
        " NonFinite ,ignored, other"
    )


def test_a_class_that_is_no_environment_is_refused():
    with pytest.raises(TypeError, match="Action has no reset and step"):
        HTTPEnvServer(Action, Action, Observation)
