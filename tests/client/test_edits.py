"""Edits and forks of generations, over sockets; on `fake` a byte is a token and the next one is a function of all before it."""

import pytest

from stream import Stream, text_of

PROMPT = "Once upon a time"


@pytest.fixture(autouse=True)
def ended(request):
    """What a test leaves paused is ended."""
    server = next((request.getfixturevalue(name) for name in ("fake", "tiny") if name in request.fixturenames), None)
    yield
    for generation in server.get("/v1/generations?limit=100").ok()["data"]:
        if generation["state"] != "finished":
            server.cancel(generation["id"]).ok()


def paused(server, at=12, **more):
    """A generation that stands at its at-th token, and its name."""
    body = {"prompt": PROMPT, "max_tokens": 40, "seed": 5, "temperature": 1, "ignore_eos": True,
            "fermata": {"pause_at": at, "on_pause": "return", **more.pop("fermata", {})}, **more}
    name = server.post("/v1/completions", body).ok()["fermata"]["generations"][0]
    assert server.generation(name)["state"] == "paused"
    return name


def tokens(server, name):
    return server.get(f"/v1/generations/{name}/tokens").ok()


def finish(server, name):
    answer = server.post(f"/v1/generations/{name}/resume", {"wait": True})
    return answer.ok()["choices"][0]["text"] if answer.status == 200 else answer


def read_until(stream, text):
    said = ""
    while said != text:
        assert text.startswith(said), (said, text)
        said += text_of([stream.chunk()])
    return said


def fresh(server, token_ids, n_prompt, max_tokens=40):
    """What a run says that has been given these tokens from its beginning: a fork of nothing, edited before its first token."""
    name = server.post("/v1/completions", {"prompt": token_ids[:n_prompt], "max_tokens": max_tokens, "seed": 5, "temperature": 1,
                                           "ignore_eos": True, "fermata": {"pause_at": 0, "on_pause": "return"}}).ok()["fermata"]["generations"][0]
    if len(token_ids) > n_prompt:
        server.post(f"/v1/generations/{name}/edit", {"edits": [{"from": {"token": n_prompt}, "tokens": token_ids[n_prompt:]}]}).ok()
    return finish(server, name)


def test_after_an_edit_comes_what_a_fresh_run_would_say(tiny):
    name = paused(tiny)
    before = tokens(tiny, name)
    at = before["n_prompt"] + 5
    edited = tiny.post(f"/v1/generations/{name}/edit", {"edits": [{"from": {"token": at}, "to": {"token": at + 2}, "text": " fox"}]}).ok()
    assert edited["first_changed"] == at == edited["kept"] and edited["version"] == 2 and edited["takes_text_back"]
    after = tokens(tiny, name)
    changed = [row["index"] for row in after["data"] if row["origin"] == "edited"]
    assert changed and changed[0] == at
    ids = [row["id"] for row in after["data"]]
    assert edited["recomputed"] == len(ids) - at
    state = tiny.generation(name)
    assert state["version"] == 2 and state["pause"]["at"]["token"] == len(ids) and " fox" in state["text"]
    assert finish(tiny, name) == fresh(tiny, ids, before["n_prompt"])
    events = [entry for entry in tiny.get(f"/v1/generations/{name}/events").body.decode().split("\n\n") if "rewound" in entry]
    assert len(events) == 1


def test_a_range_of_text_finds_its_tokens(tiny):
    name = paused(tiny)
    text = tiny.generation(name)["text"]
    utf16 = len(text[:4].encode("utf-16-le")) // 2
    edited = tiny.post(f"/v1/generations/{name}/edit", {"edits": [
        {"from": {"in": "completion", "utf16": utf16}, "to": {"in": "completion", "utf16": utf16 + len(text[4:6].encode("utf-16-le")) // 2}, "text": "XY"}]}).ok()
    assert tiny.generation(name)["text"].startswith(text[:4] + "XY" + text[6:8]) and edited["text_bytes_kept"] <= len(text[:4].encode())


def test_a_dry_run_changes_nothing_and_an_old_version_is_stale(fake):
    name = paused(fake)
    edit = {"edits": [{"from": {"token": 9}, "text": "x"}], "dry_run": True}
    assert fake.post(f"/v1/generations/{name}/edit", edit).ok()["version"] == 1
    assert fake.generation(name)["version"] == 1
    edit["dry_run"] = False
    fake.post(f"/v1/generations/{name}/edit", edit).ok()
    refused = fake.post(f"/v1/generations/{name}/edit", {**edit, "if_version": 1})
    assert (refused.status, refused.error["code"], refused.error["param"]) == (409, "stale", "if_version")
    refused = fake.post(f"/v1/generations/{name}/resume", {"if_version": 1})
    assert (refused.status, refused.error["code"], refused.error["param"]) == (409, "stale", "if_version")
    fake.post(f"/v1/generations/{name}/resume", {"if_version": 2}).ok(202)


def test_text_that_was_sent_is_not_taken_back_unless_its_stream_is_told(fake):
    body = {"prompt": "abc", "max_tokens": 30, "stream": True, "ignore_eos": True, "fermata": {"pause_at": 9}}
    edit = {"edits": [{"from": {"in": "completion", "byte": 4}, "text": "Z"}]}
    plain = Stream(fake, "/v1/completions", body)
    name = plain.generation
    fake.wait_for(name, "paused")
    said = read_until(plain, fake.generation(name)["text"])
    refused = fake.post(f"/v1/generations/{name}/edit", edit)
    assert (refused.status, refused.error["code"], refused.error["param"]) == (409, "text_already_sent", "sent_text")
    fake.post(f"/v1/generations/{name}/edit", {**edit, "sent_text": "end_streams"}).ok()
    *_, error, done = plain.chunks()
    assert error["error"]["code"] == "rewound" and done == "[DONE]"
    assert fake.generation(name)["state"] == "paused"


def test_a_stream_that_can_be_told_goes_on_with_the_new_text(fake):
    told = Stream(fake, "/v1/completions", {"prompt": "abc", "max_tokens": 30, "stream": True, "ignore_eos": True,
                                            "fermata": {"pause_at": 9, "stream_events": True}})
    name = told.generation
    fake.wait_for(name, "paused")
    said = read_until(told, fake.generation(name)["text"])
    fake.post(f"/v1/generations/{name}/edit", {"edits": [{"from": {"in": "completion", "byte": 4}, "text": "Z"}]}).ok()
    fake.post(f"/v1/generations/{name}/resume", {}).ok(202)
    left = None
    chunks = told.chunks()
    for chunk in chunks:
        notice = chunk.get("fermata", {}) if isinstance(chunk, dict) else {}
        if notice.get("type") == "rewound":
            left = said.encode()[:notice["to_byte"]].decode()
            assert said.startswith(left) and notice["to_utf16"] == len(left.encode("utf-16-le")) // 2
        elif left is not None:
            left += text_of([chunk])
    assert left == fake.generation(name)["text"] and "Z" in left


@pytest.mark.parametrize("body, param", [
    ({}, "edits"),
    ({"edits": [{"text": "x"}]}, "edits[0].from"),
    ({"edits": [{"from": {"byte": 3}, "text": "x"}]}, "edits[0].from.in"),
    ({"edits": [{"from": {"token": 3, "byte": 4}, "text": "x"}]}, "edits[0].from.token"),
    ({"edits": [{"from": {"token": 3}}]}, "edits[0].text"),
    ({"edits": [{"from": {"token": 9999}, "text": "x"}]}, "edits"),
    ({"edits": [{"from": {"token": 9}, "tokens": [10**6]}]}, "edits"),
    ({"edits": [{"from": {"token": 2}, "to": {"token": 9}, "text": "x"}]}, "edits"),
    ({"edits": [{"from": {"token": 9}, "text": "x"}], "mode": "in_place"}, "mode"),
])
def test_what_cannot_be_edited_is_named(fake, body, param):
    name = paused(fake)
    refused = fake.post(f"/v1/generations/{name}/edit", body)
    assert refused.status in (400, 501) and refused.error["param"] == param, refused.body


def test_one_that_runs_is_edited_and_runs_on(fake):
    name = fake.post("/v1/completions", {"prompt": "abc", "max_tokens": 4, "fermata": {"pause_at": 0, "on_pause": "return"}}).ok()["fermata"]["generations"][0]
    fake.post(f"/v1/generations/{name}/edit", {"edits": [{"from": {"token": 3}, "text": "q"}]}).ok()
    fake.post(f"/v1/generations/{name}/resume", {}).ok(202)
    fake.wait_for(name, "finished")
    refused = fake.post(f"/v1/generations/{name}/edit", {"edits": [{"from": {"token": 3}, "text": "q"}]})
    assert (refused.status, refused.error["code"]) == (409, "wrong_state")


def test_a_copy_says_what_its_parent_says_and_others_say_something_else(tiny):  # B2
    name = paused(tiny)
    copy, = tiny.post(f"/v1/generations/{name}/fork", {}).ok(201)["data"]
    elevens = tiny.post(f"/v1/generations/{name}/fork", {"branches": [{"seed": 11}, {"seed": 11}, {"seed": 12}, {}], "resume": False}).ok(201)["data"]
    assert copy["parent"] == name and copy["seed"] == 5 and copy["forked_at"] == tiny.generation(name)["pause"]["at"]["token"]
    assert [branch["state"] for branch in elevens] == ["paused"] * 4
    texts = [finish(tiny, branch["id"]) for branch in elevens]
    assert texts[0] == texts[1] and len({texts[0], texts[2], texts[3]}) == 3
    tiny.wait_for(copy["id"], "finished")
    assert tiny.generation(copy["id"])["text"] == finish(tiny, name)
    tree = tiny.get(f"/v1/generations/{copy['id']}/tree").ok()
    assert tree["id"] == name and {branch["id"] for branch in tree["branches"]} == {copy["id"], *(branch["id"] for branch in elevens)}


def test_a_fork_of_what_ended_and_of_another_place(tiny):  # B2
    name = paused(tiny)
    finish(tiny, name)
    ids = [row["id"] for row in tokens(tiny, name)["data"]]
    n_prompt = tokens(tiny, name)["n_prompt"]
    branch, = tiny.post(f"/v1/generations/{name}/fork", {"at": {"token": n_prompt + 6}, "branches": [{"seed": 5}]}).ok(201)["data"]
    tiny.wait_for(branch["id"], "finished")
    assert tiny.generation(branch["id"])["text"] == tiny.generation(name)["text"]
    what_if, = tiny.post(f"/v1/generations/{name}/fork", {"at": {"token": n_prompt + 6}, "branches": [
        {"seed": 5, "edits": [{"from": {"token": n_prompt + 5}, "to": {"token": n_prompt + 6}, "tokens": [ids[n_prompt]]}]}]}).ok(201)["data"]
    tiny.wait_for(what_if["id"], "finished")
    assert tiny.generation(what_if["id"])["text"] == fresh(tiny, ids[:n_prompt + 5] + [ids[n_prompt]], n_prompt)


def test_a_branch_computes_nothing_that_its_parent_has(tiny):
    name = paused(tiny)
    def n_rows():
        stats = tiny.stats()
        return stats["decode_rows"] + stats["prefill_rows"]
    before = n_rows()
    branch, = tiny.post(f"/v1/generations/{name}/fork", {}).ok(201)["data"]
    tiny.wait_for(branch["id"], "finished")
    n_new = tiny.generation(branch["id"])["usage"]["completion_tokens"] - 12
    assert n_rows() - before == n_new - 1
