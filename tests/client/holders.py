"""Clients that hold a stream through a pause that somebody else ends; each says what text came of it."""

import asyncio
import contextlib
import json
import subprocess
import threading

import openai
from langchain_openai import ChatOpenAI
from websockets.sync.client import connect

from nodes import node_command
from server import WAIT_S
from stream import Stream, text_of

MESSAGES = [{"role": "user", "content": "Hello"}]
ASKED = {"model": "tiny", "max_tokens": 200, "seed": 11}
PAUSE_AT = 20


def fermata(name):
    return {"fermata": {"pause_at": PAUSE_AT, "client_id": name}}


# ---------------------------------------------------------------------------------------- clients with their own limits


def python(url, name, **limits):
    with openai.OpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, **limits) as client:
        stream = client.chat.completions.create(messages=MESSAGES, stream=True, extra_body=fermata(name), **ASKED)
        return "".join(c.choices[0].delta.content or "" for c in stream)


def python_async(url, name):
    async def read():
        async with openai.AsyncOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0) as client:
            stream = await client.completions.create(prompt="Hello", stream=True, extra_body=fermata(name), **ASKED)
            return "".join([c.choices[0].text async for c in stream])
    return asyncio.run(read())


def langchain(url, name, **limits):
    model = ChatOpenAI(base_url=f"{url}/v1", api_key="none", max_retries=0, extra_body=fermata(name), **ASKED, **limits)

    async def read():
        return "".join([c.content async for c in model.astream("Hello")])
    return asyncio.run(read())


def node(url, name):
    run = subprocess.run(node_command(url, "through", name), capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    return json.loads(run.stdout)["text"]


def curl(url, name):
    body = json.dumps({**ASKED, "messages": MESSAGES, "stream": True, **fermata(name)})
    run = subprocess.run(["curl", "-sSN", "-H", "Content-Type: application/json", "-d", body, f"{url}/v1/chat/completions"],
                         capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
    events = [event.removeprefix("data: ") for event in run.stdout.split("\n\n") if event]
    assert events.pop() == "[DONE]"
    return text_of([json.loads(event) for event in events])


class InBackground:
    """Runs one of the above; text() waits for its end."""

    def __init__(self, client, url, name, **more):
        self.name, self._said, self._error = name, None, None
        self._thread = threading.Thread(target=self._run, args=(client, url, name), kwargs=more, daemon=True)
        self._thread.start()

    def _run(self, client, url, name, **more):
        try:
            self._said = client(url, name, **more)
        except BaseException as error:  # it belongs to the test
            self._error = error

    def text(self, wait_s):
        self._thread.join(wait_s)
        assert not self._thread.is_alive(), f"{self.name} still reads"
        if self._error:
            raise AssertionError(f"{self.name}: {self._error!r}") from self._error
        return self._said


# -------------------------------------------------------------------------------------- streams whose every byte is seen


def is_keep_alive(chunk):
    choice = chunk["choices"][0]
    return choice["finish_reason"] is None and (choice.get("delta") == {} or choice.get("text") == "") and "fermata" not in chunk


class RawCompletion:
    """A completion stream; a `path` and body of ours."""

    def __init__(self, server, path, body):
        self.stream = Stream(server, path, body)
        self.chunks, self.n_keep_alives = [], 0

    def read_keep_alives(self, n):
        while self.n_keep_alives < n:
            chunk = self.stream.chunk()
            assert isinstance(chunk, dict), f"it ended: {chunk}"
            self.chunks.append(chunk)
            self.n_keep_alives += is_keep_alive(chunk)

    def text(self):
        self.chunks += self.stream.chunks()
        assert self.chunks[-1] == "[DONE]"
        return text_of(self.chunks)


class RawEvents:
    """Server-sent events of one generation, or of a session; keep-alives are comments."""

    def __init__(self, server, path):
        self.stream = Stream(server, path, None, method="GET")
        self.stream.head()

    def read_keep_alives(self, n):
        while bytes(self.stream.data).count(b": still here\n\n") < n:
            assert self.stream._more(), "it ended"

    def finished(self):
        while (event := self.stream.event()) is not None:
            if event["event"] == "finished":
                return True
        return False


class RawWebSocket:
    """The ends of all generations; the server pings, and this client does not."""

    def __init__(self, server):
        self._stack = contextlib.ExitStack()
        self.socket = self._stack.enter_context(
            connect(f"ws://{server.host}:{server.port}/v1/events?types=finished", ping_interval=None))

    def finished(self):
        with self._stack:
            return json.loads(self.socket.recv(timeout=WAIT_S))["type"] == "finished"
