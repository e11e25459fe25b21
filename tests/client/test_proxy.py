"""A long pause behind a proxy that cuts what is idle (CASES F1).

By itself a twentieth of the real thing: paused 9 s, cut after 3 s, kept alive every 0.75 s. FERMATA_PAUSE_S=180 is the real
one (make long): cut after 60 s, kept alive every 15 s. The pause is counted in keep-alives, not slept.
"""

import os
import subprocess
import threading

import httpx2
import openai
import pytest

import holders
from holders import ASKED, MESSAGES, InBackground, RawCompletion, RawEvents, RawWebSocket, fermata
from proxy import IdleProxy
from server import BINARY, WAIT_S, tiny_model, until
from stream import Stream

PAUSE_S = float(os.environ.get("FERMATA_PAUSE_S", 9))
IDLE_S, KEEP_ALIVE_S, KEEP_ALIVES = PAUSE_S / 3, PAUSE_S / 12, 12
CHAT = {**ASKED, "messages": MESSAGES}
ENDLESS = {**CHAT, "max_tokens": 2500, "ignore_eos": True}


@pytest.fixture
def behind(start):
    """A server and the proxy before it."""
    server = start("-m", tiny_model(), "-c", "16384", "--model-name", "tiny", "--keep-alive", str(KEEP_ALIVE_S),
                   "--pause-wait", "3600", "--drain", "0").ready()
    proxy = IdleProxy(server, IDLE_S)
    yield server, proxy
    proxy.close()
    assert server.stop() == 0


def resume(server, name):
    server.post(f"/v1/generations/client:{name}/resume").ok(202)


def paused_twice(server, proxy):
    """One generation that two streams read, its own and that of its first resume: (both, what the first had before)."""
    own = RawCompletion(proxy, "/v1/chat/completions", {**ENDLESS, "stream": True, "fermata": {"pause_at": 10, "client_id": "twice"}})
    own.stream.head()
    before = server.wait_for("client:twice", "paused")
    resumed = RawCompletion(proxy, "/v1/resume", {"pause_id": before["pause"]["pause_id"], "stream": True})
    resumed.stream.head()
    server.pause("client:twice").ok()
    return own, resumed, before["text"]


def test_every_held_stream_lives_through_a_pause(behind):
    server, proxy = behind
    chat = server.post("/v1/chat/completions", CHAT).ok()["choices"][0]["message"]["content"]
    completion = server.post("/v1/completions", {**ASKED, "prompt": "Hello"}).ok()["choices"][0]["text"]
    endless = server.post("/v1/chat/completions", ENDLESS).ok()["choices"][0]["message"]["content"]

    twice, resumed, before = paused_twice(server, proxy)
    raw = {"chat": RawCompletion(proxy, "/v1/chat/completions", {**CHAT, "stream": True, **fermata("chat")}),
           "completion": RawCompletion(proxy, "/v1/completions", {**ASKED, "prompt": "Hello", "stream": True, **fermata("completion")}),
           "twice": twice}
    events = RawEvents(proxy, f"/v1/generations/{raw['chat'].stream.generation}/events")
    everything = RawEvents(proxy, "/v1/events")
    socket = RawWebSocket(proxy)
    short = {"timeout": httpx2.Timeout(WAIT_S, read=IDLE_S)}
    clients = [InBackground(holders.python, proxy.url, "python"), InBackground(holders.python, proxy.url, "python-short", **short),
               InBackground(holders.python_async, proxy.url, "python-async"),
               InBackground(holders.langchain, proxy.url, "langchain"),
               InBackground(holders.langchain, proxy.url, "langchain-short", stream_chunk_timeout=IDLE_S),
               InBackground(holders.node, proxy.url, "node"), InBackground(holders.curl, proxy.url, "curl")]
    for name in [*raw, *(client.name for client in clients)]:
        until(lambda: server.get(f"/v1/generations/client:{name}").status == 200, f"{name} has asked")
        server.wait_for(f"client:{name}", "paused")

    for held in (*raw.values(), resumed, events, everything):
        held.read_keep_alives(KEEP_ALIVES)
    assert proxy.n_cut == 0
    for name in [*raw, *(client.name for client in clients)]:
        resume(server, name)
    texts = {name: held.text() for name, held in raw.items()} | {client.name: client.text(WAIT_S) for client in clients}
    assert texts == dict.fromkeys(texts, chat) | {"completion": completion, "python-async": completion, "twice": endless}
    assert before + resumed.text() == endless
    assert events.finished() and everything.finished() and socket.finished()
    everything.stream.finish()


def test_a_whole_answer_is_cut_and_can_be_had_again(behind):
    """Nothing can be sent before the answer: the proxy cuts, which is a client that is gone. Who says so keeps the work."""
    server, proxy = behind
    text = server.post("/v1/chat/completions", CHAT).ok()["choices"][0]["message"]["content"]
    kept = {**CHAT, "fermata": {"pause_at": 20, "client_id": "kept", "on_disconnect": "pause", "idempotency_key": "once"}}
    waiting = [Stream(proxy, "/v1/chat/completions", body) for body in ({**CHAT, **fermata("lost")}, kept)]
    for one in waiting:
        one.socket.settimeout(WAIT_S + IDLE_S)
        assert one._more() is False and not one.raw, "cut without a byte"
    assert proxy.n_cut == 2
    lost = server.wait_for("client:lost", "finished")
    assert (lost["end_reason"], lost["usage"]["completion_tokens"]) == ("disconnected", 20)

    assert server.generation("client:kept")["state"] == "paused"
    again = []
    asking = threading.Thread(target=lambda: again.append(server.post("/v1/chat/completions", kept)))
    asking.start()
    resume(server, "kept")
    asking.join()
    assert again[0].ok()["choices"][0]["message"]["content"] == text


def test_news_that_a_reader_does_not_hear_put_no_keep_alive_off(pulsing):
    held = RawCompletion(pulsing, "/v1/chat/completions", {**CHAT, "stream": True, **fermata("quiet")})
    name = held.stream.generation
    pulsing.wait_for(name, "paused")
    is_over = threading.Event()

    def come_and_go():  # each departure wakes all who wait for this generation
        while not is_over.is_set():
            other = Stream(pulsing, f"/v1/generations/{name}/events", None, method="GET")
            other.head()
            other.reset()
    others = threading.Thread(target=come_and_go)
    others.start()
    try:
        held.read_keep_alives(3)
    finally:
        is_over.set()
        others.join()
    resume(pulsing, "quiet")
    assert held.text() == pulsing.post("/v1/chat/completions", CHAT).ok()["choices"][0]["message"]["content"]


# ------------------------------------------------------------------------------------------ without a stream (WIRE 3)


@pytest.fixture
def impatient(start):
    server = start("-m", tiny_model(), "-c", "16384", "--model-name", "tiny", "--pause-wait", "0.2").ready()
    yield server
    assert server.stop() == 0


def test_a_whole_answer_waits_so_long_and_then_shows_the_pause(impatient):
    text = impatient.post("/v1/chat/completions", CHAT).ok()["choices"][0]["message"]["content"]
    refused = impatient.post("/v1/chat/completions", {**CHAT, **fermata("whole")})
    assert (refused.status, refused.error["code"]) == (409, "generation_paused")
    assert refused.headers["x-should-retry"] == "false" and refused.headers["x-fermata-generation"].startswith("gen_")
    pause = refused.error["fermata"]["pause"]
    assert pause["reason"]["why"] and impatient.generation("client:whole")["state"] == "paused", "the 409 ends nothing"
    whole = impatient.post("/v1/resume", {"pause_id": pause["pause_id"], "wait": True}).ok()
    assert whole["choices"][0]["message"]["content"] == text


def test_openai_posts_it_once(impatient):
    with openai.OpenAI(base_url=f"{impatient.url}/v1", api_key="none") as client:
        with pytest.raises(openai.ConflictError) as refused:
            client.chat.completions.create(messages=MESSAGES, extra_body=fermata("python-whole"), **ASKED)
    assert refused.value.code == "generation_paused"
    pause = refused.value.body["fermata"]["pause"]
    assert len(impatient.get("/v1/generations").ok()["data"]) == 1
    impatient.cancel("client:python-whole").ok()
    assert pause["at"]["token"] > 0


def test_what_is_waited_for_by_itself(start):
    """15 s and 60 s, as WIRE has them; the flags say so."""
    told = subprocess.run([str(BINARY), "serve", "--help"], capture_output=True, text=True, check=True).stdout
    for flag, seconds in (("--keep-alive", "15"), ("--pause-wait", "60")):
        line = next(line for line in told.splitlines() if flag in line)
        assert f"={seconds} " in line, line
