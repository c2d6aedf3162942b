"""Keeps a server busy with requests of all kinds for a while and holds its memory to 2 %.

    python3 engine/cli/tests/soak.py TANDEM [MINUTES]

starts TANDEM, the binary, with its built-in demo. Clients stream, wait, hang up, send pictures, schemas, tools and nonsense.
After a fifth of the time, in which caches fill, the server's resident memory is read every second: the mean of the last
quarter of what is left may exceed that of the first quarter by 2 %, no page may be leaked, and nothing may answer 5xx.
"""

import base64
import collections
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time

CLIENTS = 6
PICTURE = os.path.join(os.path.dirname(__file__), "../../../tests/goldens/picture.png")
WORDS = "the sea and ship of a man was time in day that hand he old on white head with way as line long to".split()
SCHEMA = {
    "type": "object",
    "properties": {"city": {"enum": ["Oslo", "Lima"]}, "days": {"type": "integer", "minimum": 1, "maximum": 9}},
    "required": ["city", "days"],
    "additionalProperties": False,
}


def text(draw, most):
    return " ".join(draw.choice(WORDS) for _ in range(draw.randint(1, most)))


def requests(draw):
    """One path and body; whether to hang up."""
    with open(PICTURE, "rb") as file:
        url = "data:image/png;base64," + base64.b64encode(file.read()).decode()
    ask = [{"role": "user", "content": text(draw, 120)}]
    more = {"max_tokens": draw.randint(1, 16), "temperature": draw.choice([0, 1])}
    chat = {"messages": ask, "reasoning_effort": draw.choice(["none", "low"]), **more}
    tool = {"type": "function", "function": {"name": "f", "strict": True, "parameters": SCHEMA}}
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA, "strict": True}}
    shown = [{"type": "image_url", "image_url": {"url": url}}, {"type": "text", "text": text(draw, 10)}]
    longest = {**chat, "max_tokens": 400, "stream": True}
    return draw.choice([
        ("/v1/chat/completions", chat, False),
        ("/v1/chat/completions", {**chat, "stream": True}, False),
        ("/v1/chat/completions", {**chat, "n": 2, "logprobs": True, "top_logprobs": 3}, False),
        ("/v1/chat/completions", {**chat, "response_format": form, "reasoning_effort": "none"}, False),
        ("/v1/chat/completions", {**chat, "tools": [tool], "tool_choice": {"type": "function", "function": {"name": "f"}}, "reasoning_effort": "none"}, False),
        ("/v1/chat/completions", {**chat, "messages": [{"role": "user", "content": shown}]}, False),
        ("/v1/chat/completions", longest, True),
        ("/v1/completions", {"prompt": text(draw, 200), **more}, False),
        ("/v1/responses", {"input": text(draw, 60), "max_output_tokens": 8, "stream": draw.random() < 0.5}, False),
        ("/v1/messages", {"model": "demo", "messages": ask, **more}, False),
        ("/tokenize", {"prompt": text(draw, 500)}, False),
        ("/v1/chat/completions", {**chat, "strange": 1}, False),
        ("/v1/chat/completions", "{" * draw.randint(1, 5000), False),
    ])


def client(address, seed, until, counts):
    draw = random.Random(seed)
    while time.monotonic() < until:
        path, body, hangs_up = requests(draw)
        body = body if isinstance(body, str) else json.dumps(body)
        connection = http.client.HTTPConnection(address, timeout=300)
        connection.request("POST", path, body, {"content-type": "application/json"})
        reply = connection.getresponse()
        if hangs_up:
            reply.read(draw.randint(1, 2000))
        else:
            reply.read()
        connection.close()
        counts[f"{reply.status}{' hung up' if hangs_up else ''}"] += 1


def resident_kib(pid):
    with open(f"/proc/{pid}/status") as file:
        return int(next(line for line in file if line.startswith("VmRSS:")).split()[1])


def health(address):
    connection = http.client.HTTPConnection(address, timeout=60)
    connection.request("GET", "/health")
    return json.loads(connection.getresponse().read())


def main():
    binary, minutes = sys.argv[1], float(sys.argv[2]) if len(sys.argv) > 2 else 10
    arguments = ["serve", "--port", "0", "--served-model-name", "demo", "--log-level", "warn", "--max-model-len", "1024"]
    server = subprocess.Popen([binary, *arguments], stdout=subprocess.PIPE, text=True)
    try:
        address = server.stdout.readline().strip().split("http://")[1]
        free = health(address)["free_pages"]
        begin, counts = time.monotonic(), collections.Counter()
        until = begin + 60 * minutes
        clients = [threading.Thread(target=client, args=(address, seed, until, counts)) for seed in range(CLIENTS)]
        for thread in clients:
            thread.start()
        samples = []
        while time.monotonic() < until:
            time.sleep(1)
            if time.monotonic() > begin + 12 * minutes:
                samples.append(resident_kib(server.pid))
        for thread in clients:
            thread.join()
        while health(address)["running"]:
            time.sleep(0.1)
        left = health(address)
    finally:
        server.terminate()
        code = server.wait(timeout=60)
    part = max(1, len(samples) // 4)
    quarters = [samples[at * part:(at + 1) * part] for at in range(4)]
    means = [sum(quarter) / len(quarter) / 1024 for quarter in quarters if quarter]
    growth = means[-1] / means[0] - 1
    print(f"{sum(counts.values())} requests in {minutes:g} minutes:", dict(sorted(counts.items())))
    print("resident MiB by quarters:", ", ".join(f"{mean:.1f}" for mean in means), f"({growth:+.2%}), most {max(samples) / 1024:.1f}")
    print(f"pages: {free} free at first, {left['free_pages']} at the end")
    failed = [status for status in counts if status.startswith("5")]
    problems = [
        problem
        for problem, holds in {
            "memory grows": growth > 0.02,
            "a request failed": bool(failed),
            "pages are leaked": left["free_pages"] != free,
            "a request is still there": left["requests_under_way"] + left["prompt_tokens_waiting"] > 0,
            "nothing was answered": not counts["200"],
            "the server did not end well": code != 0,
        }.items()
        if holds
    ]
    print("FAILED: " + ", ".join(problems) if problems else "PASSED")
    sys.exit(bool(problems))


main()
