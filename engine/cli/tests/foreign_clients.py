"""The official clients against a server of the demo checkpoint, as anybody would use them.

Usage: foreign_clients.py ADDRESS PICTURE
"""

import base64
import json
import sys
import time
import urllib.request

import anthropic
import openai

ADDRESS, PICTURE = sys.argv[1:]
OFF = {"thinking": {"type": "disabled"}}
HELLO = [{"role": "user", "content": "Call me"}]
WEATHER = {
    "type": "object",
    "properties": {
        "city": {"type": "string", "enum": ["Oslo", "Lima"]},
        "days": {"type": "integer", "minimum": 1, "maximum": 9},
    },
    "required": ["city", "days"],
    "additionalProperties": False,
}
with open(PICTURE, "rb") as file:
    PICTURE_DATA = base64.b64encode(file.read()).decode()


def wait_until_idle():
    for _ in range(200):
        with urllib.request.urlopen(f"{ADDRESS}/health") as reply:
            health = json.load(reply)
        if health["running"] == health["waiting"] == health["requests_under_way"] == 0:
            return
        time.sleep(0.05)
    raise AssertionError(f"still busy: {health}")


def check_weather(arguments):
    assert set(arguments) == {"city", "days"}, arguments
    assert arguments["city"] in ("Oslo", "Lima") and 1 <= arguments["days"] <= 9, arguments


def openai_session():
    client = openai.OpenAI(base_url=f"{ADDRESS}/v1", api_key="none", max_retries=0)
    model = client.models.list().data[0].id
    chat = client.chat.completions

    def ask(messages=HELLO, **more):
        return chat.create(
            model=model, messages=messages, max_tokens=more.pop("max_tokens", 12),
            temperature=0, extra_body=OFF, **more,
        )

    whole = ask()
    said = whole.choices[0].message.content
    assert whole.usage.completion_tokens > 0 and whole.choices[0].finish_reason
    chunks = list(ask(stream=True, stream_options={"include_usage": True}))
    text = "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)
    assert text == said and chunks[-1].usage == whole.usage

    schema = {"type": "json_schema",
              "json_schema": {"name": "weather", "schema": WEATHER, "strict": True}}
    check_weather(json.loads(ask(response_format=schema, max_tokens=100).choices[0].message.content))

    image = {"type": "image_url",
             "image_url": {"url": f"data:image/png;base64,{PICTURE_DATA}"}}
    question = {"type": "text", "text": "What colour is it?"}
    seen = ask([{"role": "user", "content": [image, question]}])
    assert seen.choices[0].finish_reason and seen.usage.prompt_tokens > 10

    agent(ask)
    responses_session(client, model)

    with ask(max_tokens=400, stream=True) as stream:
        next(iter(stream))
    wait_until_idle()

    try:
        ask(top_logprobs=3)
        raise AssertionError("top_logprobs without logprobs is refused")
    except openai.BadRequestError as error:
        assert error.param == "top_logprobs", error
    print("openai", openai.__version__, "ok")


def agent(ask):
    """A loop that calls a tool three times and then answers."""
    tool = {"type": "function", "function": {
        "name": "get_weather", "description": "Weather of a city.", "parameters": WEATHER,
        "strict": True}}
    messages = [{"role": "user", "content": "Where is it warmer?"}]
    for turn in range(3):
        reply = ask(messages, tools=[tool], tool_choice="required", parallel_tool_calls=False,
                    max_tokens=200).choices[0]
        assert reply.finish_reason == "tool_calls", reply
        (call,) = reply.message.tool_calls
        check_weather(json.loads(call.function.arguments))
        messages.append(reply.message)
        messages.append({"role": "tool", "tool_call_id": call.id, "content": f"{20 + turn} C"})
    last = ask(messages, tools=[tool], tool_choice="none").choices[0]
    assert last.message.tool_calls is None and last.message.content is not None


def responses_session(client, model):
    """The newer protocol of the same client."""
    def respond(**more):
        more = {"input": "Call me", "reasoning": {"effort": "none"}, "max_output_tokens": 12} | more
        return {"model": model, "temperature": 0} | more

    whole = client.responses.create(**respond())
    assert whole.output_text and whole.usage.output_tokens > 0 and whole.output[0].type == "message"
    with client.responses.stream(**respond()) as stream:
        events = list(stream)
    names, final = [event.type for event in events], events[-1].response
    assert final.output_text == whole.output_text and final.status == whole.status, final
    assert final.usage == whole.usage and names[0] == "response.created", names
    assert names[-1] in ("response.completed", "response.incomplete"), names

    form = {"format": {"type": "json_schema", "name": "weather", "schema": WEATHER, "strict": True}}
    with client.responses.stream(**respond(text=form, max_output_tokens=100)) as stream:
        list(stream)
        held = stream.get_final_response()
    check_weather(json.loads(held.output_text))

    image = {"type": "input_image", "detail": "auto",
             "image_url": f"data:image/png;base64,{PICTURE_DATA}"}
    content = [image, {"type": "input_text", "text": "What colour is it?"}]
    seen = client.responses.create(**respond(input=[{"role": "user", "content": content}]))
    assert seen.usage.input_tokens > 10

    tool = {"type": "function", "name": "get_weather", "description": "Weather of a city.",
            "parameters": WEATHER, "strict": True}
    items = [{"role": "user", "content": "Where is it warmer?"}]
    for turn in range(3):
        said = client.responses.create(**respond(
            input=items, tools=[tool], tool_choice="required", parallel_tool_calls=False,
            max_output_tokens=200))
        (call,) = [item for item in said.output if item.type == "function_call"]
        check_weather(json.loads(call.arguments))
        items += said.output
        items.append({"type": "function_call_output", "call_id": call.call_id,
                      "output": f"{20 + turn} C"})
    last = client.responses.create(**respond(input=items, tools=[tool], tool_choice="none"))
    assert all(item.type == "message" for item in last.output), last

    thought = client.responses.create(**respond(
        reasoning={"effort": "low"}, include=["reasoning.encrypted_content"]))
    assert thought.output[0].type == "reasoning" and thought.output[0].content[0].text, thought
    assert thought.status == "incomplete", thought
    items = [{"role": "user", "content": "Call me"}, *thought.output,
             {"role": "user", "content": "Go on"}]
    again = client.responses.create(**respond(input=items))
    assert again.output_text

    try:
        client.responses.create(**respond(previous_response_id=whole.id))
        raise AssertionError("nothing is stored")
    except openai.BadRequestError as error:
        assert error.param == "previous_response_id", error


def anthropic_session():
    client = anthropic.Anthropic(base_url=ADDRESS, api_key="none", max_retries=0)
    common = {"model": "demo", "max_tokens": 12, "extra_body": {"temperature": 0}}
    whole = client.messages.create(messages=HELLO, **common)
    with client.messages.stream(messages=HELLO, **common) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()
    assert text == "".join(block.text for block in whole.content)
    assert final.stop_reason == whole.stop_reason and final.content[0].text == text, final
    assert final.usage.output_tokens == whole.usage.output_tokens
    count = client.messages.count_tokens(model="demo", messages=HELLO).input_tokens
    assert count == whole.usage.input_tokens + whole.usage.cache_read_input_tokens

    thinking = {"type": "enabled", "budget_tokens": 1024}
    thought = client.messages.create(
        model="demo", max_tokens=16, messages=HELLO, thinking=thinking)
    assert thought.content[0].type == "thinking" and thought.content[0].signature

    source = {"type": "base64", "media_type": "image/png", "data": PICTURE_DATA}
    content = [{"type": "image", "source": source}, {"type": "text", "text": "What is it?"}]
    assert client.messages.create(messages=[{"role": "user", "content": content}], **common)

    tools = [{"name": "get_weather", "description": "Weather.", "input_schema": WEATHER}]
    messages = [{"role": "user", "content": "Where is it warmer?"}]
    call = client.messages.create(
        model="demo", max_tokens=200, tools=tools, messages=messages,
        tool_choice={"type": "any", "disable_parallel_tool_use": True})
    (block,) = call.content
    check_weather(block.input)
    result = {"type": "tool_result", "tool_use_id": block.id, "content": "21 C"}
    messages += [{"role": "assistant", "content": call.content},
                 {"role": "user", "content": [result]}]
    assert client.messages.create(messages=messages, tools=tools, **common).usage.output_tokens

    with client.messages.stream(model="demo", max_tokens=400, messages=HELLO) as stream:
        next(iter(stream))
    wait_until_idle()

    try:
        client.messages.create(messages=[], **common)
        raise AssertionError("a conversation without messages is refused")
    except anthropic.BadRequestError as error:
        assert error.body["error"]["type"] == "invalid_request_error", error
    print("anthropic", anthropic.__version__, "ok")


openai_session()
anthropic_session()
