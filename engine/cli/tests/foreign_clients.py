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
