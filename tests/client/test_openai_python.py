"""The real openai client: what it asks, and what it makes of the answers."""

import itertools

import openai
import pytest

HELLO = [{"role": "user", "content": "Hello"}]
# Whatever the model is, a grammar with one output says it; its tokens are cut where the model likes.
FORCED_TEXT = "In Paris they say: 你好，世界 😀👍🏽, and café. "


def forced(text):
    return "root ::= " + '"' + text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n") + '"'


def chat(client, stream=False, extra=None, **more):
    return client.chat.completions.create(model="tiny", messages=HELLO, stream=stream, extra_body=extra or {}, **more)


def joined(chunks):
    return "".join(c.choices[0].delta.content or "" for c in chunks if c.choices)


def test_models(client):
    models = client.models.list().data
    assert [(m.id, m.root) for m in models] == [("tiny", "tiny"), ("gpt-4o", "tiny")]  # its aliases too, for lists to pick from
    assert client.models.retrieve("tiny").owned_by == "fermata"
    assert client.models.retrieve("gpt-4o").id == "gpt-4o"
    with pytest.raises(openai.NotFoundError) as refused:
        client.models.retrieve("another")
    assert refused.value.code == "model_not_found" and "tiny" in refused.value.message
    assert "--alias" in refused.value.message


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("asked, param", [({"messages": [{"role": "user", "content": "word " * 200_000}]}, "messages"),
                                          ({"messages": HELLO, "max_tokens": 1_000_000_000}, "max_tokens")])
def test_what_has_no_room_has_the_code_that_clients_look_for(client, stream, asked, param):
    with pytest.raises(openai.BadRequestError) as refused:
        client.chat.completions.create(model="tiny", stream=stream, **asked)
    assert (refused.value.code, refused.value.type) == ("context_length_exceeded", "invalid_request_error")
    assert refused.value.param == param
    says = {"messages": "prompt is too long", "max_tokens": "max_tokens is 1000000000, and at most "}[param]
    assert says in refused.value.message


def test_a_model_that_is_not_served(client):
    with pytest.raises(openai.NotFoundError) as refused:
        client.chat.completions.create(model="another", messages=HELLO)
    assert (refused.value.code, refused.value.type) == ("model_not_found", "invalid_request_error")
    assert refused.value.param == "model" and "tiny" in refused.value.message
    assert "start it with --alias NAME" in refused.value.message


def test_chat_streamed_is_chat_whole(client):
    whole = chat(client, seed=5, max_tokens=40)
    chunks = list(chat(client, stream=True, seed=5, max_tokens=40))
    assert joined(chunks) == whole.choices[0].message.content != ""
    assert chunks[-1].choices[0].finish_reason == whole.choices[0].finish_reason == "length"
    assert len({(c.id, c.created, c.model) for c in chunks}) == 1
    assert [c.choices[0].delta.role for c in chunks if c.choices[0].delta.role] == ["assistant"]
    assert whole.id.startswith("chatcmpl-") and whole.system_fingerprint == chunks[0].system_fingerprint
    assert whole.fermata["seed"] == 5 and whole.fermata["generations"][0].startswith("gen_")
    assert whole.usage.completion_tokens == 40


def test_a_drawn_seed_is_told_and_makes_the_same_again(client):
    first = chat(client, max_tokens=20)
    again = chat(client, max_tokens=20, seed=first.fermata["seed"])
    assert again.choices[0].message.content == first.choices[0].message.content


def test_completions(client, tiny):
    whole = client.completions.create(model="tiny", prompt="Once upon", max_tokens=12, seed=7)
    assert whole.choices[0].text == tiny.probe
    chunks = list(client.completions.create(model="tiny", prompt="Once upon", max_tokens=12, seed=7, stream=True))
    assert "".join(c.choices[0].text for c in chunks) == tiny.probe
    tokens = tiny.post("/tokenize", {"content": "Once upon"}).ok()["tokens"]
    by_tokens = client.completions.create(model="tiny", prompt=tokens, max_tokens=12, seed=7)
    assert by_tokens.choices[0].text == tiny.probe
    assert tiny.post("/detokenize", {"tokens": tokens}).ok()["content"] == "Once upon"


# ------------------------------------------------------------------------------------------- log-probabilities (E7)


def bytes_of(entries):
    return bytes(itertools.chain.from_iterable(e.bytes or [] for e in entries))


@pytest.mark.parametrize("stop, max_tokens", [(None, 200), ("世界", 200), (None, 9), ("ari", 200)])
def test_bytes_of_logprobs_are_those_of_the_text(client, stop, max_tokens):
    asked = dict(logprobs=True, top_logprobs=5, stop=stop, max_tokens=max_tokens, seed=3,
                 extra={"grammar": forced(FORCED_TEXT)})
    whole = chat(client, **asked)
    entries = whole.choices[0].logprobs.content
    assert bytes_of(entries) == whole.choices[0].message.content.encode()
    assert len(entries) <= whole.usage.completion_tokens
    chunks = list(chat(client, stream=True, **asked))
    streamed = [e for c in chunks if c.choices and c.choices[0].logprobs for e in c.choices[0].logprobs.content]
    assert [e.model_dump() for e in streamed] == [e.model_dump() for e in entries]
    assert joined(chunks) == whole.choices[0].message.content


def test_the_same_with_what_the_model_likes(client):
    answer = chat(client, logprobs=True, top_logprobs=3, max_tokens=50, seed=8)
    entries = answer.choices[0].logprobs.content
    assert bytes_of(entries).decode(errors="replace") == answer.choices[0].message.content
    assert all(len(e.top_logprobs) == 3 and e.logprob <= 0 for e in entries)


def test_logprobs_of_completions(client):
    answer = client.completions.create(model="tiny", prompt="Once", max_tokens=10, seed=2, logprobs=2)
    found = answer.choices[0].logprobs
    raw = bytes(itertools.chain.from_iterable(found.bytes))
    assert raw.decode(errors="replace") == answer.choices[0].text
    assert [t for t in found.tokens if not t.startswith("bytes:")]
    assert found.text_offset[0] == 0 and len(found.tokens) == len(found.token_logprobs) == len(found.top_logprobs)


# --------------------------------------------------------------------------------------------- structure and refusals


def test_json_schema(client):
    import json
    schema = {"type": "object", "properties": {"answer": {"type": "string", "maxLength": 8}}, "required": ["answer"],
              "additionalProperties": False}
    wanted = {"type": "json_schema", "json_schema": {"name": "one", "schema": schema, "strict": True}}
    answer = chat(client, response_format=wanted, seed=1, max_tokens=200)
    assert set(json.loads(answer.choices[0].message.content)) == {"answer"}


@pytest.mark.parametrize("field, value, extra", [
    ("n", 2, {}), ("tools", [{"type": "function", "function": {"name": "f", "parameters": {}}}], {}),
    (None, None, {"temprature": 1}), (None, None, {"fermata": {"on_pauze": "hold"}}), ("logit_bias", {"x": 1}, {})])
def test_what_is_not_known_is_refused_by_name(client, field, value, extra):
    name = field or next(iter(extra))
    if name == "fermata":
        name = "on_pauze"
    with pytest.raises(openai.BadRequestError) as refused:
        chat(client, max_tokens=1, extra=extra, **({field: value} if field else {}))
    assert name in refused.value.message and name in refused.value.param


def test_a_typo_gets_a_hint(client):
    with pytest.raises(openai.BadRequestError) as refused:
        chat(client, extra={"temprature": 1})
    assert "temperature" in refused.value.message


def test_harmless_fields_pass(client):
    chat(client, max_tokens=1, user="u", metadata={"a": "b"}, store=False, service_tier="auto")


def test_the_client_gives_up_at_once_where_trying_again_cannot_help(tiny):
    # openai-python posts a 409 three times unless x-should-retry says no: the pause of a finished one would be asked thrice.
    seen = []
    import httpx2
    http = httpx2.Client(event_hooks={"response": [lambda r: seen.append((r.status_code, r.headers.get("x-should-retry")))]})
    with openai.OpenAI(base_url=f"{tiny.url}/v1", api_key="none", max_retries=2, http_client=http) as client:
        generation = chat(client, max_tokens=1).fermata["generations"][0]
        with pytest.raises(openai.ConflictError) as refused:
            client.post(f"/generations/{generation}/pause", cast_to=object, body={})
    assert refused.value.code == "wrong_state"
    assert seen == [(200, None), (409, "false")]


# ------------------------------------------------------------------------------------------------------------- pauses


def test_pause_and_resume_from_the_client(client, tiny):
    """As docs/clients.md shows it."""
    undisturbed = chat(client, seed=11, max_tokens=30).choices[0].message.content
    stream = chat(client, stream=True, seed=11, max_tokens=30, extra={"fermata": {"pause_at": 10}})
    chunks = []
    for chunk in stream:
        chunks.append(chunk)
        if len(chunks) == 6:  # the pause comes at 10; a resume waits for nothing, so look first
            generation = chunks[0].fermata["generations"][0]
            record = tiny.wait_for(generation, "paused")["pause"]
            assert record["at"]["token"] == tiny.generation(generation)["usage"]["prompt_tokens"] + 10
            client.post("/resume", cast_to=object, body={"pause_id": record["pause_id"]})
    assert joined(chunks) == undisturbed


def test_pause_returned_and_resumed_as_a_stream(client):
    undisturbed = chat(client, seed=12, max_tokens=30).choices[0].message.content
    first = list(chat(client, stream=True, seed=12, max_tokens=30, stream_options={"include_usage": True},
                      extra={"fermata": {"pause_at": 10, "on_pause": "return"}}))
    last = first[-2].choices[0]
    assert last.finish_reason == "pause" and first[-1].usage.completion_tokens == 10
    rest = list(client.post("/resume", cast_to=openai.types.chat.ChatCompletion, stream=True,
                            stream_cls=openai.Stream[openai.types.chat.ChatCompletionChunk],
                            body={"pause_id": last.pause["pause_id"], "stream": True}))
    assert rest[0].id == first[0].id
    assert joined(first) + joined(rest) == undisturbed and joined(first) != ""


def test_a_whole_answer_can_end_with_a_pause(client):
    answer = chat(client, seed=12, max_tokens=30, extra={"fermata": {"pause_at": 10, "on_pause": "return"}})
    assert answer.choices[0].finish_reason == "pause" and answer.usage.completion_tokens == 10
    generation = answer.fermata["generations"][0]
    whole = client.post("/resume", cast_to=openai.types.chat.ChatCompletion,
                        body={"pause_id": answer.choices[0].pause["pause_id"], "stream": False, "wait": True})
    assert whole.choices[0].message.content.startswith(answer.choices[0].message.content)
    assert whole.fermata["generations"] == [generation] and whole.choices[0].finish_reason == "length"


def test_half_a_json_answer_needs_a_yes(client):
    wanted = {"type": "json_schema", "json_schema": {"name": "n", "schema": {"type": "integer"}}}
    with pytest.raises(openai.BadRequestError) as refused:
        chat(client, response_format=wanted, extra={"fermata": {"on_pause": "return"}})
    assert "allow_partial" in refused.value.message
    chat(client, response_format=wanted, max_tokens=3, extra={"fermata": {"on_pause": "return", "allow_partial": True}})


def test_a_cancelled_stream_raises(client):
    stream = chat(client, stream=True, max_tokens=8000)
    with pytest.raises(openai.APIError) as ended:
        for chunk in stream:
            if getattr(chunk, "fermata", None):
                client.post(f"/generations/{chunk.fermata['generations'][0]}/cancel", cast_to=object, body={})
    assert ended.value.code == "cancelled"


def test_leaving_the_stream_ends_the_generation(client, tiny):
    with chat(client, stream=True, max_tokens=8000) as stream:
        generation = next(iter(stream)).fermata["generations"][0]
    assert tiny.wait_for(generation, "finished")["end_reason"] == "disconnected"
