"""Random calls of an environment's tools."""

from __future__ import annotations

import random

import pytest

from openenv.core.env_server.mcp_types import CallToolAction, Tool
from openenv.core.env_server.types import Action
from openenv.rollout.errors import InvalidRollout
from openenv.rollout.tools import calls_tools, compile_calls

GUESS = {
    "type": "object",
    "properties": {"number": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["number"],
}
PATTERN = {
    "type": "object",
    "properties": {"text": {"type": "string", "pattern": "^x$"}},
    "required": ["text"],
}
TAGGED = {
    "type": "object",
    "properties": {"metadata": {"type": "boolean"}},
    "required": ["metadata"],
}


def tool(name, schema):
    return Tool(name=name, description="", input_schema=schema)


def test_a_schema_tells_whether_actions_are_calls():
    assert calls_tools(CallToolAction.model_json_schema())
    assert not calls_tools(Action.model_json_schema())
    assert not calls_tools({"properties": {"type": True}})
    assert not calls_tools({})


def test_calls_name_a_tool_and_fit_its_schema():
    draw = compile_calls([tool("guess", GUESS), tool("quit", {"type": "object"})])
    rng = random.Random(1)

    calls = [CallToolAction.model_validate(draw(rng)) for _ in range(100)]

    assert {"guess", "quit"} == {call.tool_name for call in calls}
    for call in calls:
        if call.tool_name == "guess":
            assert {"number"} == call.arguments.keys()
            assert 1 <= call.arguments["number"] <= 9
        else:
            assert {} == call.arguments


def test_the_same_generator_makes_the_same_calls():
    draw = compile_calls([tool("guess", GUESS), tool("tag", TAGGED)])
    one, other = random.Random(4), random.Random(4)

    assert [draw(one) for _ in range(20)] == [draw(other) for _ in range(20)]


def test_an_argument_called_metadata_is_drawn():
    draw = compile_calls([tool("tag", TAGGED)])

    assert {"metadata"} == draw(random.Random(1))["arguments"].keys()


def test_a_tool_that_cannot_be_drawn_is_left_out():
    draw = compile_calls([tool("name", PATTERN), tool("guess", GUESS)])
    rng = random.Random(2)

    assert {"guess"} == {draw(rng)["tool_name"] for _ in range(20)}


@pytest.mark.parametrize(
    ("tools", "complaint"),
    [
        ([], "has no tools"),
        ([tool("name", PATTERN)], "none of the tools name can be drawn"),
    ],
)
def test_where_no_call_can_be_drawn_the_policy_is_asked_for(tools, complaint):
    with pytest.raises(InvalidRollout, match=complaint) as raised:
        compile_calls(tools)

    assert "give --policy" in str(raised.value)
