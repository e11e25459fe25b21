"""Pause, resume, cancel; repeats; sessions (CASES A5, A7, B4; WIRE sections 3, 6, 8)."""

import json
import threading

import pytest

from stream import Stream, finish_of, text_of
from server import until

ABC = "cycle:" + ",".join(str(b) for b in b"abcdefghijklmnopqrstuvwxyz")
LONG = {"prompt": "long", "max_tokens": 8000, "ignore_eos": True, "seed": 9}


def stream(server, path="/v1/completions", **body):
    return Stream(server, path, {**body, "stream": True})


def undisturbed(server, **body):
    return server.post("/v1/completions", body).ok()["choices"][0]["text"]


# ------------------------------------------------------------------------------------------------------ pause, resume


def test_paused_is_silent_and_goes_on_as_if_nothing_had_been(tiny):
    asked = dict(prompt="story", max_tokens=1500, ignore_eos=True, seed=21, temperature=0.9, repeat_penalty=1.2)
    whole = undisturbed(tiny, **asked)
    live = stream(tiny, **asked)
    begun = live.texts(5)
    record = tiny.pause(live.generation).ok()
    before = tiny.stats()
    # What was sent before the pause is read to its last byte; then nothing comes while others are served.
    while len(begun) < len(tiny.generation(live.generation)["text"]):
        begun += live.texts(1)
    undisturbed(tiny, prompt="another", max_tokens=30, seed=1)
    assert len(begun.encode()) >= record["sent_bytes"], "U+FFFD may be longer than what it stands for"
    live.socket.settimeout(0.05)
    with pytest.raises(TimeoutError):
        live.chunk()
    live.socket.settimeout(30)
    paused = tiny.generation(live.generation)
    assert paused["state"] == "paused" and paused["wait_reason"] == "user" and paused["text"] == begun
    assert paused["pause"]["pause_id"] == record["pause_id"]
    assert tiny.stats()["decode_rows"] - before["decode_rows"] <= 30, "the paused one was not decoded"
    tiny.post("/v1/resume", {"pause_id": record["pause_id"]}).ok(202)
    assert begun + text_of(live.chunks()) == whole


def test_many_pauses_change_nothing(tiny):
    asked = dict(prompt="story", max_tokens=400, ignore_eos=True, seed=22)
    whole = undisturbed(tiny, **asked)
    live = stream(tiny, **asked)
    text = live.texts(1)
    for _ in range(15):
        answer = tiny.pause(live.generation)
        if answer.status == 409:
            break
        pause_id = answer.ok()["pause_id"]
        assert tiny.pause(live.generation).ok()["pause_id"] == pause_id, "the pause of a paused one is the same"
        tiny.post(f"/v1/generations/{live.generation}/resume", {"pause_id": pause_id}).ok(202)
        text += text_of([live.chunk()])
    assert text + text_of(live.chunks()) == whole


@pytest.mark.parametrize("sampling", [{"top_p": 0.95, "repeat_penalty": 1.3, "dry_multiplier": 0.8}, {"mirostat": 2}])
@pytest.mark.parametrize("at", [0, 1, 37, 150, 299])
def test_wherever_the_pause_is(tiny, sampling, at):  # B1
    asked = dict(prompt="anywhere", max_tokens=300, ignore_eos=True, seed=7, temperature=0.9, **sampling)
    whole = undisturbed(tiny, **asked)
    live = stream(tiny, **asked, fermata={"pause_at": at})
    record = tiny.wait_for(live.generation, "paused")["pause"]
    seen = tiny.get(f"/v1/generations/{live.generation}/inspect?top=20").ok()
    assert tiny.generation(live.generation)["usage"]["completion_tokens"] == at
    tiny.post("/v1/resume", {"pause_id": record["pause_id"]}).ok(202)
    assert text_of(live.chunks()) == whole and seen["pause"]["pause_id"] == record["pause_id"]


def test_an_empty_pause_id_means_no_pause(tiny):
    live = stream(tiny, **LONG)
    tiny.pause(live.generation).ok()
    for path in (f"/v1/generations/{live.generation}/resume", "/v1/resume"):
        refused = tiny.post(path, {"pause_id": ""})
        assert refused.status == 400 and refused.error["param"] == "pause_id"
    assert tiny.generation(live.generation)["state"] == "paused"


def test_a_whole_answer_waits_through_a_pause(tiny):
    asked = {**LONG, "max_tokens": 60}
    whole = undisturbed(tiny, **asked)
    waiting = Stream(tiny, "/v1/completions", {**asked, "fermata": {"client_id": "waits", "pause_at": 20}})
    until(lambda: tiny.get("/v1/generations/client:waits").status == 200, "it is there")
    record = tiny.wait_for("client:waits", "paused")["pause"]
    tiny.post("/v1/resume", {"pause_id": record["pause_id"]}).ok(202)
    waiting.event()
    assert waiting.status == 200 and json.loads(waiting.data)["choices"][0]["text"] == whole


def test_stop_strings_and_characters_across_pauses(fake):
    """Each byte a token, a pause at each of them: half characters and half stop strings are part of the state."""
    text = "é😀 Use User: no"
    grammar = "cycle:" + ",".join(str(b) for b in text.encode())
    for at in range(1, len(text.encode()) - 6):
        live = stream(fake, prompt="x", grammar=grammar, max_tokens=60, stop="User:", fermata={"pause_at": at})
        held = fake.wait_for(live.generation, "paused")["pause"]
        assert held["sent_bytes"] + held["held_bytes"] == at
        fake.post("/v1/resume", {"pause_id": held["pause_id"]}).ok(202)
        chunks = live.chunks()
        assert text_of(chunks) == "é😀 Use " and finish_of(chunks)[0] == "stop"
        assert b"User" not in bytes(live.data).replace(b'"stop_string":"User:"', b"")


def test_returned_pauses_are_resumed_as_streams(tiny):
    asked = dict(prompt="story", max_tokens=60, ignore_eos=True, seed=23)
    whole = undisturbed(tiny, **asked)
    first = stream(tiny, **asked, fermata={"pause_at": 20, "on_pause": "return"})
    begun = first.chunks()
    assert begun[-2]["choices"][0]["finish_reason"] == "pause"
    record = begun[-2]["choices"][0]["pause"]
    assert begun[-2]["fermata"]["pauses"] == [record["pause_id"]] and record["reason"]["why"] == "pause_at"
    body = {"pause_id": record["pause_id"], "stream": True}
    rest = Stream(tiny, "/v1/resume", body).chunks()
    assert rest[0]["id"] == begun[0]["id"] and finish_of(rest)[0] == "length"
    assert text_of(begun) + text_of(rest) == whole
    # Idempotent by pause_id: the same body is the same outcome, another one is refused.
    assert text_of(Stream(tiny, "/v1/resume", body).chunks()) == text_of(rest)
    refused = tiny.post("/v1/resume", {"pause_id": record["pause_id"], "wait": True})
    assert (refused.status, refused.error["code"]) == (409, "already_resumed")
    assert refused.headers["x-should-retry"] == "false"


def test_two_resumes_at_once_decode_once(tiny):
    asked = dict(prompt="story", max_tokens=200, ignore_eos=True, seed=24)
    whole = undisturbed(tiny, **asked)
    first = stream(tiny, **asked, fermata={"pause_at": 20, "on_pause": "return"})
    begun = first.chunks()
    before = tiny.stats()["decode_rows"]
    body = {"pause_id": begun[-2]["choices"][0]["pause"]["pause_id"], "stream": True}
    streams = [Stream(tiny, "/v1/resume", body) for _ in range(4)]
    for one in streams:
        assert text_of(begun) + text_of(one.chunks()) == whole
    assert tiny.stats()["decode_rows"] - before <= 181


def test_resumed_whole(tiny):
    asked = dict(prompt="story", max_tokens=60, ignore_eos=True, seed=25)
    whole = undisturbed(tiny, **asked)
    for _ in range(10):
        paused = tiny.post("/v1/completions", {**asked, "fermata": {"pause_at": 20, "on_pause": "return"}}).ok()
        body = {"pause_id": paused["choices"][0]["pause"]["pause_id"], "wait": True}
        done = tiny.post("/v1/resume", body).ok()
        assert (done["choices"][0]["finish_reason"], done["choices"][0]["text"]) == ("length", whole)
        assert tiny.post("/v1/resume", body).ok()["choices"] == done["choices"]


def test_resuming_without_asking_for_the_answer(tiny):
    paused = tiny.post("/v1/completions", {**LONG, "fermata": {"pause_at": 20, "on_pause": "return"}}).ok()
    pause_id = paused["choices"][0]["pause"]["pause_id"]
    record = tiny.post("/v1/resume", {"pause_id": pause_id}).ok(202)
    assert record["state"] != "paused" and record["pause"] is None
    tiny.cancel(record["id"]).ok()


def test_what_cannot_be_resumed(tiny):
    assert tiny.post("/v1/resume", {"pause_id": "pau_0"}).status == 404
    assert tiny.post("/v1/resume", {}).error["param"] == "pause_id"
    live = stream(tiny, **LONG)
    first = tiny.pause(live.generation).ok()["pause_id"]
    tiny.post("/v1/resume", {"pause_id": first}).ok(202)
    second = tiny.pause(live.generation).ok()["pause_id"]
    assert second != first
    assert tiny.post("/v1/resume", {"pause_id": first, "wait": True}).error["code"] == "already_resumed"
    assert tiny.post("/v1/resume", {"pause_id": second, "if_version": 7}).error["code"] == "stale"
    refused = tiny.post("/v1/resume", {"pause_id": second, "edits": []})
    assert refused.status == 400 and "edits" in refused.error["param"]
    assert tiny.generation(live.generation)["state"] == "paused", "refusals change nothing"
    tiny.cancel(live.generation).ok()
    assert finish_of(live.chunks())[1]["code"] == "cancelled"


def test_what_is_in_no_pause_is_not_resumed(tiny):
    live = stream(tiny, **LONG)
    live.texts(1)
    path = f"/v1/generations/{live.generation}/resume"
    for body in ({}, {"stream": True}, {"wait": True}):
        refused = tiny.post(path, body)
        assert (refused.status, refused.error["code"], refused.headers["x-should-retry"]) == (409, "wrong_state", "false")
        assert "it is running, and in no pause" in refused.error["message"]
    pause_id = tiny.pause(live.generation).ok()["pause_id"]
    for where in ("/v1/resume", path, path):
        assert tiny.post(where, {"pause_id": pause_id}).ok(202)["pause"] is None, "the same call again: its first outcome"
    assert tiny.post(path, {}).error["code"] == "wrong_state"
    tiny.pause(live.generation).ok()
    for _ in range(2):
        tiny.post(path, {}).ok(202)
    tiny.cancel(live.generation).ok()
    live.chunks()


def test_a_finished_one(tiny):
    done = tiny.post("/v1/completions", {"prompt": "x", "max_tokens": 2}).ok()
    for name in (done["fermata"]["generations"][0], done["id"]):
        refused = tiny.pause(name)
        assert (refused.status, refused.error["code"], refused.headers["x-should-retry"]) == (409, "wrong_state", "false")
        assert tiny.post(f"/v1/generations/{name}/resume").status == 409
        assert tiny.cancel(name).ok()["end_reason"] == "length", "cancel is idempotent"


def test_pause_in_the_middle_of_prefill(tiny):  # A2 (d)
    asked = dict(prompt="word " * 4000, max_tokens=5, seed=2)
    live = stream(tiny, **asked, fermata={"client_id": "prefill"})
    before = tiny.stats()["prefill_rows"]
    until(lambda: tiny.stats()["prefill_rows"] > before, "prefill has begun")
    record = tiny.pause(live.generation).ok()
    assert 0 < record["computed"] < record["at"]["token"] and not record["has_logits"]
    stood = tiny.stats()["prefill_rows"]
    tiny.get("/health").ok()
    assert tiny.stats()["prefill_rows"] == stood
    tiny.post("/v1/resume", {"pause_id": record["pause_id"]}).ok(202)
    text = text_of(live.chunks())
    assert tiny.stats()["prefill_rows"] - stood <= record["at"]["token"] - record["computed"] + 1, "it goes on, not anew"
    assert text == undisturbed(tiny, **asked)


def test_cancel_in_the_middle_of_prefill(tiny):  # A2 (a)
    live = stream(tiny, prompt="other " * 4000, max_tokens=5)
    before = tiny.stats()["prefill_rows"]
    until(lambda: tiny.stats()["prefill_rows"] > before, "prefill has begun")
    ended = tiny.cancel(live.generation).ok()
    assert ended["usage"]["completion_tokens"] == 0 and ended["end_reason"] == "cancelled"
    stood = tiny.stats()["prefill_rows"]
    finish_of(live.chunks())
    assert tiny.stats()["prefill_rows"] == stood
    # A prefix that was cut off must not be served (A3).
    one = undisturbed(tiny, prompt="other " * 300, max_tokens=20, seed=3)
    assert one == undisturbed(tiny, prompt="other " * 300, max_tokens=20, seed=3)


def test_inspect_and_tokens(tiny):
    asked = dict(prompt="story", max_tokens=30, ignore_eos=True, temperature=0)
    whole = undisturbed(tiny, **asked)
    paused = tiny.post("/v1/completions", {**asked, "fermata": {"pause_at": 10, "on_pause": "return"}}).ok()
    name = paused["fermata"]["generations"][0]
    seen = tiny.get(f"/v1/generations/{name}/inspect?top=3").ok()
    assert seen == tiny.get(f"/v1/generations/{name}/inspect?top=3").ok(), "looking changes nothing"
    none = tiny.get(f"/v1/generations/{name}/inspect?top=0").ok()
    assert none == {**seen, "next": []} and none["has_logits"] and none["entropy"] > 0
    assert len(seen["next"]) == 3 and seen["pause"]["pause_id"] == paused["choices"][0]["pause"]["pause_id"]
    tiny.post("/v1/resume", {"pause_id": seen["pause"]["pause_id"], "wait": True})
    done = tiny.wait_for(name, "finished")
    rows = tiny.get(f"/v1/generations/{name}/tokens").ok()
    generated = rows["data"][rows["n_prompt"]:]
    assert done["text"] == whole and len(generated) == 30
    assert generated[10]["id"] == seen["next"][0]["id"], "at temperature 0 the first of them came"
    assert {k: generated[10][k] for k in ("id", "token", "bytes", "logprob")} == seen["next"][0]
    assert b"".join(bytes(r["bytes"]) for r in generated).decode(errors="replace") == whole
    page = tiny.get(f"/v1/generations/{name}/tokens?from=2&limit=3").ok()
    assert page["data"] == rows["data"][2:5] and page["has_more"]
    assert tiny.get(f"/v1/generations/{name}/inspect").status == 409
    assert tiny.get(f"/v1/generations/{name}/tokens?from=x").status == 400


def test_pauses_are_told_in_the_stream_to_who_asks(tiny):
    live = stream(tiny, prompt="s", max_tokens=20, seed=1, fermata={"pause_at": 5, "stream_events": True})
    pause_id = tiny.wait_for(live.generation, "paused")["pause"]["pause_id"]
    tiny.post(f"/v1/generations/{live.generation}/resume").ok(202)
    chunks = live.chunks()
    told = [c for c in chunks if c != "[DONE]" and "type" in c.get("fermata", {})]
    assert [c["fermata"]["type"] for c in told] == ["paused", "resumed"]
    before = text_of(chunks[:chunks.index(told[0])])
    assert told[0]["fermata"]["pause_id"] == pause_id and "pause_id" not in told[1]["fermata"]
    assert [c["choices"] for c in told] == [[{"index": 0, "text": "", "finish_reason": None}]] * 2, "nothing of ours is in there"
    assert told[0]["fermata"]["to_byte"] == len(before.encode())
    assert told[0]["fermata"]["to_utf16"] == len(before.encode("utf-16-le")) // 2
    assert all(text_of([c]) == "" for c in told)


# -------------------------------------------------------------------------------------------------------- cancel (A5)


def test_cancel_is_exact_about_its_end(tiny):
    live = stream(tiny, **LONG)
    live.texts(3)
    ended = tiny.cancel(live.generation).ok()
    assert (ended["state"], ended["end_reason"]) == ("finished", "cancelled")
    chunks = live.chunks()
    assert finish_of(chunks)[1]["code"] == "cancelled"
    rows = tiny.stats()["decode_rows"]
    undisturbed(tiny, prompt="y", max_tokens=2)
    assert tiny.stats()["decode_rows"] - rows <= 2, "no token after it"
    assert tiny.cancel(live.generation).ok()["usage"] == ended["usage"]


def test_a_cancel_that_comes_first(fake):
    for i in range(100):
        assert fake.post(f"/v1/generations/client:early-{i}/cancel").status == 202
        live = stream(fake, prompt="x", max_tokens=50, ignore_eos=True, fermata={"client_id": f"early-{i}"})
        chunks = live.chunks()
        assert finish_of(chunks)[1]["code"] == "cancelled" and text_of(chunks) == ""
        assert fake.generation(f"client:early-{i}")["usage"]["completion_tokens"] == 0
    # The tombstone is used up: the same name runs the next time.
    assert fake.post("/v1/completions", {"prompt": "x", "max_tokens": 2, "fermata": {"client_id": "early-0"}}).status == 200


def test_cancel_races_with_start_and_end(fake):
    for i in range(100):
        live = stream(fake, prompt="x", max_tokens=1 + i % 40, ignore_eos=True, fermata={"client_id": f"race-{i}"})
        answer = fake.post(f"/v1/generations/client:race-{i}/cancel")
        chunks = live.chunks()
        reason, error, _ = finish_of(chunks)
        record = fake.generation(live.generation)
        if answer.status == 202 or record["end_reason"] == "cancelled":
            assert error["code"] == "cancelled" and (answer.status == 200 or text_of(chunks) == "")
        else:
            assert reason == "length" and answer.ok()["end_reason"] == "length"
        assert record["text"] == text_of(chunks)


def test_pause_and_cancel_at_once(tiny):
    for i in range(30):
        live = stream(tiny, **{**LONG, "seed": i})
        name = live.generation
        answers = []
        threads = [threading.Thread(target=lambda call=call: answers.append(call(name))) for call in (tiny.pause, tiny.cancel)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert {a.status for a in answers} <= {200, 409}
        assert finish_of(live.chunks())[1]["code"] == "cancelled"


# -------------------------------------------------------------------------------------------------------- idempotency


def test_the_same_key_is_the_same_generation(tiny):
    body = {"prompt": "k", "max_tokens": 20, "fermata": {"idempotency_key": "one"}}
    first = tiny.post("/v1/completions", body).ok()
    again = tiny.post("/v1/completions", body).ok()
    assert again == first
    refused = tiny.post("/v1/completions", {**body, "max_tokens": 21})
    assert (refused.status, refused.error["code"]) == (422, "idempotency_mismatch")
    by_header = [tiny.post("/v1/completions", {"prompt": "h", "max_tokens": 3}, headers={"Idempotency-Key": "two"}).ok()
                 for _ in range(2)]
    assert by_header[0] == by_header[1]


def test_a_repeat_attaches_to_what_still_runs(tiny):
    body = {**LONG, "max_tokens": 500, "fermata": {"idempotency_key": "three"}}
    first = stream(tiny, **body)
    begun = first.texts(3)
    second = stream(tiny, **body)
    assert second.generation == first.generation
    assert text_of(second.chunks()) == begun + text_of(first.chunks())


def test_a_key_whose_run_was_left_is_free_again(tiny):
    body = {**LONG, "max_tokens": 4000, "fermata": {"idempotency_key": "four"}}
    first = stream(tiny, **body)
    first.texts(1)
    name = first.generation
    first.finish()
    assert tiny.wait_for(name, "finished")["end_reason"] == "disconnected"
    second = stream(tiny, **body)
    assert second.generation != name
    tiny.cancel(second.generation).ok()
    finish_of(second.chunks())


def test_a_repeat_gets_the_recorded_pause_not_a_newer_state(tiny):
    body = {**LONG, "max_tokens": 40, "fermata": {"idempotency_key": "five", "pause_at": 10, "on_pause": "return"}}
    first = tiny.post("/v1/completions", body).ok()
    assert tiny.post("/v1/completions", body).ok()["choices"][0]["finish_reason"] == "pause"
    tiny.post("/v1/resume", {"pause_id": first["choices"][0]["pause"]["pause_id"]}).ok(202)
    tiny.wait_for(first["fermata"]["generations"][0], "finished")
    assert tiny.post("/v1/completions", body).ok() == first


# ---------------------------------------------------------------------------------------------------- sessions (A7)


def test_a_new_message_replaces_its_own_session_only(tiny):
    mine = stream(tiny, **LONG, fermata={"session": "X"})
    other = stream(tiny, **{**LONG, "max_tokens": 1500}, fermata={"session": "Y"})
    begun = mine.texts(2), other.texts(2)
    assert mine.headers["x-fermata-session"] == "X"
    next_one = tiny.post("/v1/completions", {"prompt": "next", "max_tokens": 5, "fermata": {"session": "X"}}).ok()
    assert finish_of(mine.chunks())[1]["code"] == "replaced"
    assert finish_of(other.chunks())[0] == "length" and begun[1]
    listed = tiny.get("/v1/sessions/X").ok()["generations"]
    assert [g["end_reason"] for g in listed] == ["replaced", "length"]
    assert listed[1]["id"] == next_one["fermata"]["generations"][0]
    assert tiny.get("/v1/sessions/nobody").status == 404


def test_a_new_message_pauses_when_asked_to(tiny):
    asked = {**LONG, "max_tokens": 800}
    whole = undisturbed(tiny, **asked)
    first = stream(tiny, **asked, fermata={"session": "P"})
    begun = first.texts(2)
    tiny.post("/v1/completions", {"prompt": "n", "max_tokens": 3, "fermata": {"session": "P", "on_new_message": "pause"}}).ok()
    paused = tiny.generation(first.generation)
    assert (paused["state"], paused["wait_reason"]) == ("paused", "new_message")
    assert (paused["pause"]["reason"]["class"], paused["pause"]["reason"]["why"]) == ("user", "new_message")
    assert paused["id"] in [g["id"] for g in tiny.get("/v1/generations?reason=new_message").ok()["data"]]
    tiny.post("/v1/resume", {"pause_id": paused["pause"]["pause_id"]}).ok(202)
    assert begun + text_of(first.chunks()) == whole


def test_a_new_message_queues_when_asked_to(tiny):
    first = stream(tiny, **{**LONG, "max_tokens": 500}, fermata={"session": "Q"})
    first.texts(2)
    queued = [stream(tiny, prompt=f"n{i}", max_tokens=3, fermata={"session": "Q", "on_new_message": "queue"}) for i in range(3)]
    assert tiny.generation(queued[0].generation)["state"] == "queued"
    assert tiny.pause(queued[1].generation).ok(202)["wait_reason"] == "user"
    tiny.cancel(queued[1].generation).ok()
    assert finish_of(first.chunks())[0] == "length", "it was not disturbed"
    assert finish_of(queued[0].chunks())[0] is not None
    assert finish_of(queued[1].chunks())[1]["code"] == "cancelled"
    assert finish_of(queued[2].chunks())[0] is not None
    ends = {g["id"]: g for g in tiny.get("/v1/sessions/Q").ok()["generations"]}
    assert ends[queued[1].generation]["usage"]["completion_tokens"] == 0


def test_at_most_one_of_a_session_runs(tiny):
    queue = {"session": "one", "on_new_message": "queue"}
    first = stream(tiny, **LONG, fermata={"session": "one"})
    first.texts(1)
    second, third = (stream(tiny, prompt="n", max_tokens=3, fermata=queue) for _ in range(2))
    tiny.cancel(second.generation).ok()
    finish_of(second.chunks())
    for _ in range(20):
        states = [tiny.generation(one.generation)["state"] for one in (first, third)]
        assert states == ["running", "queued"], "whom it stood behind is gone, but not who runs"
    # A new message that wins wins over all of them, not over the last in the queue alone.
    tiny.post("/v1/completions", {"prompt": "m", "max_tokens": 2, "fermata": {"session": "one"}}).ok()
    assert finish_of(third.chunks())[1]["code"] == finish_of(first.chunks())[1]["code"] == "replaced"


def test_a_cancel_and_the_next_message_at_once(fake):  # A5
    for i in range(50):
        first = stream(fake, prompt="x", max_tokens=300, ignore_eos=True, fermata={"session": "C", "client_id": f"turn-{i}"})
        cancel = threading.Thread(target=fake.cancel, args=(f"client:turn-{i}",))
        cancel.start()
        answer = fake.post("/v1/completions", {"prompt": "y", "max_tokens": 3, "ignore_eos": True, "fermata": {"session": "C"}})
        cancel.join()
        assert answer.ok()["usage"]["completion_tokens"] == 3, "the next turn is not hit by it"
        reason, error, _ = finish_of(first.chunks())
        assert reason == "length" or error["code"] in ("cancelled", "replaced")


def test_pausing_and_cancelling_a_session(tiny):
    live = stream(tiny, **LONG, fermata={"session": "S"})
    live.texts(1)
    assert [g["state"] for g in tiny.post("/v1/sessions/S/pause").ok()["data"]] == ["paused"]
    assert [g["end_reason"] for g in tiny.post("/v1/sessions/S/cancel").ok()["data"]] == ["cancelled"]
    finish_of(live.chunks())
    assert tiny.post("/v1/sessions/nobody/cancel").status == 404


def test_a_pause_holds_what_waits_for_its_session(tiny):
    first = stream(tiny, **LONG, fermata={"session": "H"})
    first.texts(1)
    waits = stream(tiny, prompt="n", max_tokens=3, ignore_eos=True, fermata={"session": "H", "on_new_message": "queue"})
    for _ in range(2):
        held = tiny.pause(waits.generation).ok(202)
        assert (held["id"], held["state"], held["wait_reason"]) == (waits.generation, "queued", "user")
    tiny.cancel(first.generation).ok()
    first.chunks()
    undisturbed(tiny, prompt="beside", max_tokens=20)
    assert tiny.generation(waits.generation)["state"] == "queued", "its turn came, and it is held"
    tiny.post(f"/v1/generations/{waits.generation}/resume").ok(202)
    assert finish_of(waits.chunks())[0] == "length"


def test_a_paused_session_goes_on_as_it_stood(tiny):
    asked = {**LONG, "max_tokens": 800}
    whole = undisturbed(tiny, **asked)
    first = stream(tiny, **asked, fermata={"session": "R"})
    begun = first.texts(2)
    waits = stream(tiny, prompt="n", max_tokens=3, ignore_eos=True, fermata={"session": "R", "on_new_message": "queue"})
    names = [first.generation, waits.generation]
    told = lambda answer: [(g["id"], g["wait_reason"]) for g in answer.ok()["data"]]
    assert told(tiny.post("/v1/sessions/R/pause")) == [(names[0], "user"), (names[1], "user")]
    assert told(tiny.post("/v1/sessions/R/resume")) == [(names[0], None), (names[1], "queue")]
    assert begun + text_of(first.chunks()) == whole
    assert finish_of(waits.chunks())[0] == "length", "then it was its turn"
    nothing = tiny.post("/v1/sessions/R/resume").ok()
    assert nothing == {"object": "list", "has_more": False, "first_id": None, "last_id": None, "data": []}
    assert tiny.post("/v1/sessions/nobody/resume").status == 404


def test_of_a_session_the_one_that_ran_goes_on(tiny):
    """A pause by its request counts as well; what a new message displaced was not paused by who pauses the session."""
    displaced = stream(tiny, **LONG, fermata={"session": "D"})
    displaced.texts(1)
    live = stream(tiny, **LONG, fermata={"session": "D", "on_new_message": "pause", "pause_at": 5})
    tiny.wait_for(live.generation, "paused")
    state = lambda one: (lambda g: (g["state"], g["wait_reason"]))(tiny.generation(one.generation))
    for pause_it in (lambda: None, lambda: tiny.post("/v1/sessions/D/pause").ok()):
        pause_it()
        for _ in range(2):
            tiny.post("/v1/sessions/D/resume").ok()
            assert state(live)[0] == "running" and state(displaced) == ("paused", "new_message")
    tiny.cancel(live.generation).ok()
    tiny.post("/v1/sessions/D/resume").ok()
    assert state(displaced) == ("paused", "new_message")
    tiny.post(f"/v1/generations/{displaced.generation}/resume").ok(202)
    assert tiny.cancel(displaced.generation).ok()["end_reason"] == "cancelled"
    for one in (live, displaced):
        one.chunks()
