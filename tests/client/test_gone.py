"""Clients that are gone, or that do not read (CASES A1, A9; WIRE section 6)."""

import pytest

from server import until
from stream import Stream, finish_of, text_of

LONG = {"prompt": "long", "max_tokens": 8000, "ignore_eos": True, "seed": 9, "stream": True}


def stands_still(server):
    """No row is decoded any more: what is asked is counted twice, with other work in between that is counted too."""
    before = server.stats()
    for _ in range(20):
        server.get("/health").ok()
    after = server.stats()
    return (before["decode_rows"], before["prefill_rows"]) == (after["decode_rows"], after["prefill_rows"])


@pytest.mark.parametrize("how", ["finish", "reset"])
@pytest.mark.parametrize("streams", [True, False])
def test_nothing_is_decoded_for_who_is_gone(tiny, how, streams):
    name = f"client:gone-{how}-{streams}"
    live = Stream(tiny, "/v1/completions", {**LONG, "stream": streams, "fermata": {"client_id": name[7:]}})
    if streams:
        live.texts(20)
    else:
        until(lambda: tiny.get(f"/v1/generations/{name}").status == 200 and
              tiny.generation(name)["usage"]["completion_tokens"] > 20, "20 tokens")
    getattr(live, how)()
    ended = tiny.wait_for(name, "finished")
    assert ended["end_reason"] == "disconnected" and ended["usage"]["completion_tokens"] < 8000
    assert stands_still(tiny)


def prompt(first, n_tokens):
    return [first] * n_tokens  # unlike others from the first token on, so that nothing is shared


@pytest.mark.parametrize("how", ["finish", "reset"])
def test_nothing_is_computed_for_who_left_in_the_queue(tiny, how):
    # Of a pool of 16,384: two of these prompts do not fit.
    busy = Stream(tiny, "/v1/completions", {**LONG, "prompt": prompt(500, 9000), "max_tokens": 7000})
    until(lambda: tiny.generation(busy.generation)["state"] == "running", "it runs")
    waiting = [Stream(tiny, "/v1/completions", {**LONG, "prompt": prompt(600 + i, 8000), "max_tokens": 4}) for i in range(5)]
    names = [one.generation for one in waiting]
    assert {tiny.generation(name)["state"] for name in names} == {"queued"}
    for one in waiting[:4]:
        getattr(one, how)()
    for name in names[:4]:
        ended = tiny.wait_for(name, "finished")
        assert ended["end_reason"] == "disconnected" and ended["usage"]["completion_tokens"] == 0
    assert tiny.generation(names[4])["state"] == "queued"
    tiny.cancel(busy.generation).ok()
    finish_of(busy.chunks())
    before = tiny.stats()["prefill_rows"]
    assert finish_of(waiting[4].chunks())[0] == "length"
    assert tiny.stats()["prefill_rows"] - before <= 8000, "one prompt was computed, not five"


def test_gone_in_the_middle_of_prefill(tiny):  # A2 (b)
    before = tiny.stats()["prefill_rows"]
    live = Stream(tiny, "/v1/completions", {**LONG, "prompt": prompt(700, 12000), "max_tokens": 5})
    name = live.generation
    until(lambda: tiny.stats()["prefill_rows"] > before, "prefill has begun")
    live.finish()
    ended = tiny.wait_for(name, "finished")
    assert ended["end_reason"] == "disconnected" and ended["usage"]["completion_tokens"] == 0
    assert tiny.stats()["prefill_rows"] - before < 12000 and stands_still(tiny)


def test_on_disconnect_pause(tiny):
    asked = {**LONG, "max_tokens": 1200}
    whole = tiny.post("/v1/completions", {**asked, "stream": False}).ok()["choices"][0]["text"]
    live = Stream(tiny, "/v1/completions", {**asked, "fermata": {"on_disconnect": "pause"}})
    begun, name = live.texts(5), live.generation
    live.reset()
    record = tiny.wait_for(name, "paused")["pause"]
    assert stands_still(tiny)
    rest = Stream(tiny, "/v1/resume", {"pause_id": record["pause_id"], "stream": True}).chunks()
    assert whole.startswith(begun) and whole == whole[:len(whole) - len(text_of(rest))] + text_of(rest)
    assert tiny.generation(name)["text"] == whole


def test_on_disconnect_continue(tiny):
    asked = {**LONG, "max_tokens": 600}
    whole = tiny.post("/v1/completions", {**asked, "stream": False}).ok()["choices"][0]["text"]
    live = Stream(tiny, "/v1/completions", {**asked, "fermata": {"on_disconnect": "continue"}})
    name = live.generation
    live.finish()
    done = tiny.wait_for(name, "finished")
    assert (done["end_reason"], done["text"]) == ("length", whole)


def test_a_paused_one_without_its_client_ends(tiny):
    live = Stream(tiny, "/v1/completions", LONG)
    tiny.pause(live.generation).ok()
    name = live.generation
    live.finish()
    assert tiny.wait_for(name, "finished")["end_reason"] == "disconnected"


def test_one_of_two_readers_leaves(tiny):
    body = {**LONG, "max_tokens": 600, "fermata": {"idempotency_key": "two readers"}}
    first, second = Stream(tiny, "/v1/completions", body), Stream(tiny, "/v1/completions", body)
    assert first.generation == second.generation
    first.texts(2)
    first.reset()
    assert finish_of(second.chunks())[0] == "length", "somebody still reads"


# Many bytes per token, so that what lies in the buffers of both sockets is soon full.
WORDY = {"messages": [{"role": "user", "content": "talk"}], "max_tokens": 6000, "ignore_eos": True, "seed": 9}


def slow_reader(server):
    slow = Stream(server, "/v1/chat/completions", {**WORDY, "stream": True, "logprobs": True, "top_logprobs": 20},
                  receive_bytes=4096)
    until(lambda: server.generation(slow.generation)["wait_reason"] == "slow_reader", "it waits for its reader")
    return slow


def test_a_reader_that_does_not_read_is_waited_for(tiny):
    slow = slow_reader(tiny)
    waits = tiny.generation(slow.generation)
    n = waits["usage"]["completion_tokens"]
    assert waits["state"] == "paused" and n < 6000
    # Others do not notice.
    other = Stream(tiny, "/v1/completions", {**LONG, "prompt": "other", "max_tokens": 200})
    assert finish_of(other.chunks())[0] == "length"
    assert tiny.generation(slow.generation)["usage"] == waits["usage"], "nothing was decoded for it meanwhile"
    text = waits["text"]
    got = ""
    while len(got) <= len(text):  # more than there was: it went on
        got += slow.texts(1)
    whole = tiny.post("/v1/chat/completions", {**WORDY, "max_tokens": n + 1}).ok()["choices"][0]["message"]["content"]
    assert got.startswith(text) and whole.startswith(text)
    tiny.cancel(slow.generation).ok()
    finish_of(slow.chunks())


def test_a_pause_of_a_slow_one_is_the_users(tiny):
    slow = slow_reader(tiny)
    record = tiny.pause(slow.generation).ok()
    assert record["reason"]["why"] == "user"
    n_bytes = 0
    while n_bytes < record["sent_bytes"]:
        n_bytes += len(slow.texts(1).encode())
    assert tiny.generation(slow.generation)["state"] == "paused", "reading does not resume what a user paused"
    tiny.cancel(slow.generation).ok()
    finish_of(slow.chunks())
