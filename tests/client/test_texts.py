"""What is in a stream and what must not be: stop strings, usage, limits, shapes (CASES E1, E4, F2, F6, F8, F9)."""

import json

import pytest

from stream import Stream, finish_of, text_of
from test_openai_python import forced

TEXT = "I think that Paris, 巴黎, is 😀 lovely\nUser: is it?"


def both(server, body, path="/v1/completions"):
    """(text, finish_reason) whole and streamed, which must be alike, and every byte that was sent."""
    whole = server.post(path, body)
    stream = Stream(server, path, {**body, "stream": True})
    chunks = stream.chunks()
    choice = whole.ok()["choices"][0]
    text = choice["text"] if "text" in choice else choice["message"]["content"]
    assert text_of(chunks) == text
    assert finish_of(chunks)[0] == choice["finish_reason"]
    return choice, whole.body + bytes(stream.raw)


# --------------------------------------------------------------------------------------------------- stop strings (E1)


@pytest.mark.parametrize("stop", [["ari"], ["Paris"], [" that Paris, 巴黎, is"], ["黎"], ["😀"], ["\nUser:", "\n", "User"],
                                  ["zz", "zzz", "lovely\nUser: is it?"], ["?"], ["I"]])
@pytest.mark.parametrize("engine", ["tiny", "fake"])
def test_nothing_of_a_stop_string_gets_out(request, engine, stop):
    server = request.getfixturevalue(engine)
    if engine == "tiny":
        grammar, limit = forced(TEXT), 200
    else:  # the fake's tokens are single bytes: every stop string is split
        grammar, limit = "cycle:" + ",".join(str(b) for b in TEXT.encode()), len(TEXT.encode())
    body = {"prompt": "x", "grammar": grammar, "max_tokens": limit, "stop": stop, "seed": 1}
    found, raw = both(server, body)
    begins = {s: TEXT.find(s) for s in stop if s in TEXT}
    first = min(begins.values())
    assert found["text"] == TEXT[:first] and found["finish_reason"] == "stop"
    assert found["fermata"]["stop_string"] in stop
    # Not in any byte of the text; the answer names the string that matched, once, in its own field.
    matched = json.dumps(found["fermata"]["stop_string"], ensure_ascii=False).encode()
    assert matched[1:-1] not in raw.replace(b'"stop_string":' + matched, b"")


def test_half_a_stop_string_comes_out_once_at_the_end(tiny):
    body = {"prompt": "x", "grammar": forced(TEXT), "max_tokens": 200, "stop": ["is it? yes", "zzz"], "seed": 1}
    assert both(tiny, body)[0]["text"] == TEXT


@pytest.mark.parametrize("n", range(1, 12))
def test_half_a_stop_string_comes_out_once_at_the_limit(fake, n):
    grammar = "cycle:" + ",".join(str(b) for b in b"ab\nUser")
    found, _ = both(fake, {"prompt": "x", "grammar": grammar, "max_tokens": n, "stop": ["\nUser:", "b\nUse!"]})
    assert found == {**found, "text": ("ab\nUser" * 2)[:n], "finish_reason": "length"}


@pytest.mark.parametrize("n", range(1, 18))
def test_each_delta_is_whole_characters_and_nothing_is_invented(fake, n):  # E5
    text = "é😀👍🏽你"
    grammar = "cycle:" + ",".join(str(b) for b in text.encode())
    stream = Stream(fake, "/v1/completions", {"prompt": "x", "grammar": grammar, "max_tokens": n, "stream": True})
    got = text_of(stream.chunks())
    assert got == text.encode()[:n].decode(errors="ignore") or got == text.encode()[:n].decode(errors="replace")


@pytest.mark.parametrize("stop, why", [("", "empty"), (["a", ""], "empty"), ([str(i) for i in range(17)], "16"), (5, "stop")])
def test_stop_strings_that_are_none(fake, stop, why):
    error = fake.post("/v1/completions", {"prompt": "x", "stop": stop}).error
    assert "stop" in error["param"] and why in error["message"] + json.dumps(error)


# ---------------------------------------------------------------------------------------------------------- usage (F2)


@pytest.mark.parametrize("wanted", [True, False, None])
@pytest.mark.parametrize("end", ["stop", "length", "cancel", "pause"])
def test_the_usage_chunk(tiny, wanted, end):
    body = {"prompt": "one two", "stream": True, "seed": 3, "max_tokens": 8000 if end == "cancel" else 12}
    if wanted is not None:
        body["stream_options"] = {"include_usage": wanted}
    if end == "stop":
        body |= {"grammar": forced("abcdefgh STOP"), "stop": "STOP"}
    if end == "pause":
        body["fermata"] = {"pause_at": 5}
    stream = Stream(tiny, "/v1/completions", body)
    if end == "cancel":
        begun = [stream.chunk() for _ in range(4)]
        tiny.cancel(stream.generation)
    elif end == "pause":
        tiny.wait_for(stream.generation, "paused")
        tiny.post(f"/v1/generations/{stream.generation}/resume").ok(202)
    chunks = (begun if end == "cancel" else []) + stream.chunks()
    reason, error, usage = finish_of(chunks)
    assert (reason or error["code"]) == {"cancel": "cancelled", "pause": "length"}.get(end, end)
    of_record = tiny.generation(stream.generation)["usage"]
    if wanted:
        last = [c for c in chunks if c != "[DONE]" and "error" not in c][-1]
        assert last["choices"] == [] and last["usage"] == usage == of_record
    else:
        assert usage is None and all("usage" not in c for c in chunks if c != "[DONE]")
    n = {"length": 12, "pause": 12}.get(end)
    assert of_record["completion_tokens"] == n if n else of_record["completion_tokens"] >= 1


# ------------------------------------------------------------------------------------------ tiny and odd limits (F6)


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens", "n_predict"])
@pytest.mark.parametrize("n", [0, 1, 2, 3])
def test_exactly_so_many(tiny, name, n):
    before = tiny.stats()
    answer = tiny.post("/v1/completions", {"prompt": f"{name} {n}", name: n, "ignore_eos": True}).ok()
    assert answer["usage"]["completion_tokens"] == n and answer["choices"][0]["finish_reason"] == "length"
    after = tiny.stats()
    assert after["decode_rows"] - before["decode_rows"] <= n, "nothing is decoded that nobody sees"


@pytest.mark.parametrize("more", [{"max_tokens": None}, {"max_tokens": -1}, {"max_tokens": 510}, {}])
def test_as_many_as_fit(fake, more):
    usage = fake.post("/v1/completions", {"prompt": "x", "ignore_eos": True, **more}).ok()["usage"]
    assert usage["total_tokens"] == 512


@pytest.mark.parametrize("more", [{"max_tokens": "5"}, {"max_tokens": -2}, {"max_tokens": 1.5}, {"max_tokens": 1 << 70},
                                  {"max_tokens": 1 << 31}, {"max_tokens": 5, "max_completion_tokens": 6},
                                  {"max_tokens": [5]}, {"max_tokens": True}])
def test_odd_limits_are_refused_by_name(fake, more):
    refused = fake.post("/v1/completions", {"prompt": "x", **more})
    assert refused.status == 400 and "max_" in refused.error["param"]


@pytest.mark.parametrize("n", [511, 1_000_000_000])
def test_more_than_fits_is_refused_with_both_counts(fake, n):
    refused = fake.post("/v1/completions", {"prompt": "x", "max_tokens": n})
    assert refused.status == 400 and str(n) in refused.error["message"] and "512" in refused.error["message"]


def test_both_names_with_one_value(fake):
    fake.post("/v1/completions", {"prompt": "x", "max_tokens": 3, "max_completion_tokens": 3}).ok()


def test_the_rest_of_the_budget_survives_a_pause(tiny):
    body = {"prompt": "a b", "max_tokens": 3, "seed": 4, "ignore_eos": True}
    whole = tiny.post("/v1/completions", body).ok()["choices"][0]["text"]
    stream = Stream(tiny, "/v1/completions", {**body, "stream": True, "fermata": {"pause_at": 1}})
    tiny.wait_for(stream.generation, "paused")
    tiny.post(f"/v1/generations/{stream.generation}/resume").ok(202)
    assert text_of(stream.chunks()) == whole
    assert tiny.generation(stream.generation)["usage"]["completion_tokens"] == 3


# ------------------------------------------------------------------------------------------------ message shapes (F8)


def ask(server, messages, **more):
    return server.post("/v1/chat/completions", {"messages": messages, "max_tokens": 6, "seed": 1, **more})


def said(server, messages, **more):
    answer = ask(server, messages, **more).ok()
    return answer["choices"][0]["message"]["content"], answer["usage"]["prompt_tokens"]


def test_parts_are_the_string_token_for_token(tiny):
    parts = [{"type": "text", "text": "Hel"}, {"type": "text", "text": "lo, wor"}, {"type": "text", "text": "ld"}]
    assert said(tiny, [{"role": "user", "content": parts}]) == said(tiny, [{"role": "user", "content": "Hello, world"}])
    assert said(tiny, [{"role": "developer", "content": "Be"}, {"role": "user", "content": "a"}]) == \
        said(tiny, [{"role": "system", "content": "Be"}, {"role": "user", "content": "a"}])


@pytest.mark.parametrize("messages", [
    [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}],  # an interrupt before the first token
    [{"role": "user", "content": ""}],
    [{"role": "system", "content": "only"}],
    [{"role": "user", "content": "a"}, {"role": "system", "content": "in the middle"}, {"role": "user", "content": "b"}]])
def test_unusual_dialogues_are_answered(tiny, messages):
    ask(tiny, messages).ok()


@pytest.mark.parametrize("messages, named", [
    ([], "messages"), (None, "messages"), ("hi", "messages"), ([5], "messages[0]"),
    ([{"role": "user", "content": None}], "messages[0].content"), ([{"role": "user"}], "messages[0].content"),
    ([{"role": "user", "content": []}], "messages[0].content"),
    ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}], "messages[0].content[0].type"),
    ([{"role": "wizard", "content": "a"}], "messages[0].role"),
    ([{"role": "tool", "content": "a", "tool_call_id": "x"}], "messages[0]"),
    ([{"role": "user", "content": "a", "colour": "red"}], "messages[0].colour")])
def test_shapes_that_are_none_are_400_and_named(tiny, messages, named):
    refused = ask(tiny, messages)
    assert refused.status == 400 and refused.error["param"].startswith(named), refused.body


def test_a_final_assistant_message_is_continued(tiny):
    user = {"role": "user", "content": "Say it"}
    grammar = {"grammar": forced("one two three four")}
    whole, _ = said(tiny, [user], **{**grammar, "max_tokens": 100})
    assert whole == "one two three four"
    # Its text stands before the answer: the grammar begins anew, and the prompt is longer by its tokens.
    begun = [user, {"role": "assistant", "content": [{"type": "text", "text": "zero "}]}]
    text, n_prompt = said(tiny, begun, **{**grammar, "max_tokens": 100})
    assert text == whole and n_prompt > said(tiny, [user])[1]
    assert said(tiny, begun, continue_final_message=True) == said(tiny, begun)
    assert ask(tiny, [user], continue_final_message=True).error["param"] == "continue_final_message"


def test_a_model_without_a_template_says_so(fake):
    refused = ask(fake, [{"role": "user", "content": "a"}])
    assert refused.status == 501 and refused.headers["x-should-retry"] == "false"
    assert "/v1/completions" in refused.error["message"]


# ------------------------------------------------------------------------------------------ too long, too deep (F9)


@pytest.mark.parametrize("n_prompt, status", [(511, 200), (512, 400), (513, 400), (1536, 400)])
@pytest.mark.parametrize("stream", [False, True])
def test_too_long_is_400_with_both_counts(fake, n_prompt, status, stream):
    answer = fake.post("/v1/completions", {"prompt": [97] * n_prompt, "stream": stream})
    assert answer.status == status
    if status == 400:
        assert (answer.error["code"], answer.error["type"]) == ("context_length_exceeded", "invalid_request_error")
        assert str(n_prompt) in answer.error["message"] and "512" in answer.error["message"]
        assert not answer.headers["content-type"].startswith("text/event-stream")


@pytest.mark.parametrize("body, status", [
    ("[" * 100_000, 400), ('{"prompt":' + "[" * 65 + "]" * 65 + "}", 400), ('{"a":' * 5000 + "1" + "}" * 5000, 400),
    (b'{"prompt": "\xff\xfe"}', 400), ('{"prompt": "x"', 400), ('{"prompt": "x", "prompt": "y"}', 400), ("", 400),
    ("[]", 400), ('"x"', 400), ('{"prompt": "\\ud800"}', 400), (b" " * (16 * 1024 * 1024 + 1), 413)])
def test_bodies_that_are_none(tiny, body, status):
    live = Stream(tiny, "/v1/completions", {"prompt": "live", "max_tokens": 300, "seed": 6, "stream": True})
    live.texts(2)
    refused = tiny.post("/v1/completions", body)
    assert refused.status == status, refused.body
    assert refused.error["type"] == "invalid_request_error"
    assert finish_of(live.chunks())[0] in ("length", "stop"), "other streams are unharmed"


@pytest.mark.parametrize("grammar", ['root ::= ' + "(" * 20_000 + '"a"' + ")" * 20_000, 'root ::= root "a"',
                                     'root ::= "a"{1000000}', "root ::= nothing", "no grammar at all"])
def test_grammars_that_are_none(tiny, grammar):
    refused = tiny.post("/v1/completions", {"prompt": "x", "grammar": grammar, "max_tokens": 3})
    assert refused.status in (400, 422), refused.body


def test_a_schema_that_is_too_deep(tiny):
    schema = {"type": "string"}
    for _ in range(30):
        schema = {"type": "object", "properties": {"a": schema}, "required": ["a"], "additionalProperties": False}
    tiny.post("/v1/completions", {"prompt": "x", "json_schema": schema, "max_tokens": 3}).ok()
    for _ in range(29):
        schema = {"type": "array", "items": schema}
    refused = tiny.post("/v1/completions", {"prompt": "x", "json_schema": schema, "max_tokens": 3})
    assert refused.status == 400 and refused.error["message"]
