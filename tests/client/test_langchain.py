"""LangChain (langchain-openai) as it comes: answers, usage, stops, pauses, interrupts."""

import asyncio
import threading

import openai
import pytest
from langchain_core.exceptions import ContextOverflowError
from langchain_openai import ChatOpenAI
from langchain_openai.chat_models import _client_utils

from server import until

ASKED = {"messages": [{"role": "user", "content": "Hello"}], "max_tokens": 60, "seed": 11}


def model(server, fermata=None, **more):
    asked = {"model": "tiny", "api_key": "none", "max_retries": 0, "seed": 11, "max_tokens": 60, **more}
    return ChatOpenAI(base_url=f"{server.url}/v1", extra_body={"fermata": fermata} if fermata else None, **asked)


@pytest.fixture(scope="module", autouse=True)
def no_connection_is_left():
    """LangChain keeps its HTTP clients for later models; the server is asked in the end whether all connections went."""
    yield
    _client_utils._cached_sync_httpx_client.cache_clear()
    _client_utils._cached_async_httpx_client.cache_clear()


@pytest.fixture
def undisturbed(pulsing):
    return pulsing.post("/v1/chat/completions", ASKED).ok()


def text_of(answer):
    return answer["choices"][0]["message"]["content"]


class KeepAlives:
    """Counts chunks that say nothing (the first, with the role, is one), and calls `then` at the n-th."""

    def __init__(self, n, then):
        self.n, self.then, self.seen = n, then, 0

    def see(self, chunk):
        if chunk.content or chunk.usage_metadata or set(chunk.response_metadata) - {"model_provider"}:
            return
        self.seen += 1
        assert self.seen < self.n + 100, "it does not go on"
        if self.seen == self.n:
            self.then()


def test_a_prompt_without_room_is_what_langchain_calls_so(pulsing):
    with pytest.raises(ContextOverflowError):
        model(pulsing).invoke("word " * 200_000)


def test_invoke(pulsing, undisturbed):
    said = model(pulsing).invoke("Hello")
    assert said.content == text_of(undisturbed)
    assert said.usage_metadata["output_tokens"] == undisturbed["usage"]["completion_tokens"] == 60
    assert said.usage_metadata["input_tokens"] == undisturbed["usage"]["prompt_tokens"]
    assert said.response_metadata["finish_reason"] == "length"


def test_the_generation_is_named_in_a_header(pulsing):
    said = model(pulsing, include_response_headers=True).invoke("Hello")
    assert pulsing.generation(said.response_metadata["headers"]["x-fermata-generation"])["state"] == "finished"


def test_stream_with_usage(pulsing, undisturbed):
    chunks = list(model(pulsing, stream_usage=True).stream("Hello"))
    assert "".join(c.content for c in chunks) == text_of(undisturbed)
    usages = [c.usage_metadata for c in chunks if c.usage_metadata]
    assert [u["output_tokens"] for u in usages] == [60]


def test_stop(pulsing, undisturbed):
    text = text_of(undisturbed)
    stop = text[20:24]
    wanted = text[:text.index(stop)]
    said = model(pulsing).invoke("Hello", stop=[stop])
    assert (said.content, said.response_metadata["finish_reason"]) == (wanted, "stop")
    assert "".join(c.content for c in model(pulsing).stream("Hello", stop=[stop])) == wanted


def test_held_in_mid_stream(pulsing, undisturbed):
    quiet = KeepAlives(5, lambda: pulsing.post("/v1/generations/client:lc-held/resume").ok(202))
    text = ""
    for chunk in model(pulsing, {"pause_at": 20, "client_id": "lc-held"}).stream("Hello"):
        text += chunk.content
        quiet.see(chunk)
    assert quiet.seen >= 5 and text == text_of(undisturbed)


def test_its_limit_between_chunks_is_never_reached(pulsing, undisturbed):
    """astream gives up when no chunk comes for stream_chunk_timeout (120 s if nobody says so); comments are no chunks."""
    asked = model(pulsing, {"pause_at": 20, "client_id": "lc-limit"}, stream_chunk_timeout=2)
    quiet = KeepAlives(30, lambda: pulsing.post("/v1/generations/client:lc-limit/resume").ok(202))  # 3 s

    async def read():
        text = ""
        async for chunk in asked.astream("Hello"):
            text += chunk.content
            quiet.see(chunk)
        return text
    assert asyncio.run(read()) == text_of(undisturbed) and quiet.seen >= 30


def test_invoke_waits_through_a_pause(pulsing, undisturbed):
    said = []
    asking = threading.Thread(target=lambda: said.append(model(pulsing, {"pause_at": 20, "client_id": "lc-whole"}).invoke("Hello")))
    asking.start()
    until(lambda: pulsing.get("/v1/generations/client:lc-whole").status == 200, "it is known")
    pulsing.wait_for("client:lc-whole", "paused")
    pulsing.post("/v1/generations/client:lc-whole/resume").ok(202)
    asking.join()
    assert said[0].content == text_of(undisturbed)


def test_a_returned_pause_is_a_reason_like_another(pulsing, undisturbed):
    chunks = list(model(pulsing, {"pause_at": 20, "on_pause": "return", "client_id": "lc-returned"}).stream("Hello"))
    whole = chunks[0]
    for chunk in chunks[1:]:
        whole += chunk
    assert whole.response_metadata["finish_reason"] == "pause"
    begun = "".join(c.content for c in chunks)
    assert begun and text_of(undisturbed).startswith(begun)
    pulsing.cancel("client:lc-returned").ok()


def test_cancelled_is_an_error(pulsing):
    asked = model(pulsing, {"client_id": "lc-cancel"}, max_tokens=8000)
    with pytest.raises(openai.APIError) as ended:
        for n, _ in enumerate(asked.stream("Hello")):
            if n == 3:
                pulsing.cancel("client:lc-cancel").ok()
    assert ended.value.code == "cancelled"


@pytest.mark.parametrize("pause_at", [None, 5])
def test_an_abandoned_stream_ends_its_generation(pulsing, pause_at):
    name = f"lc-left-{pause_at}"
    fermata = {"client_id": name} | ({"pause_at": pause_at} if pause_at else {})
    stream = model(pulsing, fermata, max_tokens=8000).stream("Hello")
    for _ in range(3):
        next(stream)
    stream.close()
    assert pulsing.wait_for(f"client:{name}", "finished")["end_reason"] == "disconnected"


def test_a_refusal_names_the_field(pulsing):
    with pytest.raises(openai.BadRequestError) as refused:
        model(pulsing, {"on_pauze": "hold"}).invoke("Hello")
    assert "on_pauze" in refused.value.message
