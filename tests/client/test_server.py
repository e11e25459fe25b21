"""The server as a whole: while it loads, when it ends, under load (CASES A6, G1, G2)."""

import asyncio
import fcntl
import http.client
import json
import os
import pathlib
import re
import resource
import signal
import subprocess

import pytest

from server import BINARY, taking_nothing, tiny_model, until, WAIT_S
from stream import Stream, finish_of, text_of
from test_security import key_file

LONG = {"prompt": "long", "max_tokens": 8000, "ignore_eos": True, "seed": 9, "stream": True}


# --------------------------------------------------------------------------------------------------------- beginning


def lines_of(said, name):
    """What stands behind a name in what serve prints when it is ready."""
    lines = said.split("\n")
    at = next(i for i, line in enumerate(lines) if line.startswith(f"  {name} "))
    end = next(i for i in range(at + 1, len(lines)) if not lines[i].startswith("   "))
    return "\n".join([lines[at].split(maxsplit=1)[1], *lines[at + 1:end]])


@pytest.mark.parametrize("flags", [["--engine", "fake"], ["-m", tiny_model()], ["--engine", "fake", "--host", "127.0.0.2"],
                                   ["--engine", "fake", "--host", "0.0.0.0", "KEYS"]])
def test_the_calls_it_says_to_try_are_answered(start, tmp_path, monkeypatch, flags):
    if flags[-1] == "KEYS":
        path, keys = key_file(tmp_path, ("ann", "-", "use"))
        flags = [*flags[:-1], "--api-key-file", str(path)]
        monkeypatch.setenv("FERMATA_API_KEY", keys["ann"])
    server = start(*flags).ready()
    until(lambda: "stop    Ctrl-C" in "".join(server.log), "it has said all")
    said = "".join(line for line in server.log if line.startswith(("fermata serves", " ")))

    def tried(name):
        ran = subprocess.run(lines_of(said, name), shell=True, capture_output=True, text=True, timeout=WAIT_S)
        assert ran.returncode == 0, ran.stderr
        return ran.stdout
    told = tried("try")
    assert told.count("data: ") <= 210 and told.endswith("data: [DONE]\n\n") and 'data: {"error"' not in told, told
    # It has ended: to pause it then is refused, by that very generation.
    for name in ("pause", "resume"):
        assert json.loads(tried(name))["error"]["code"] == "wrong_state"


def test_it_says_by_which_names_it_may_be_called_and_what_to_set(start, tmp_path):
    path, keys = key_file(tmp_path, ("ann", "-", "use"))
    server = start("--engine", "fake", "--host", "0.0.0.0", "--allow-host", "My.Name", "--api-key-file", str(path)).ready()
    until(lambda: "stop    Ctrl-C" in "".join(server.log), "it has said all")
    said = "".join(line for line in server.log if line.startswith(" "))
    names, rest = lines_of(said, "names").split("; ")
    assert "421" in rest and "--allow-host NAME" in rest and "my.name" in names
    for name in names.split(", "):
        assert server.get("/v1/models", key=keys["ann"], headers={"Host": f"{name}:{server.port}"}).status == 200, name
    assert server.get("/v1/models", key=keys["ann"], headers={"Host": "other.name"}).status == 421
    assert lines_of(said, "key").startswith("export FERMATA_API_KEY=") and "new-key" in lines_of(said, "key")


def test_aliases_come_with_commas_or_one_by_one(start):
    server = start("--engine", "fake", "--model-name", "one", "--alias", "a,b", "--alias", "c", "--alias", "one").ready()
    assert [model["id"] for model in server.get("/v1/models").ok()["data"]] == ["one", "a", "b", "c"]
    for name in ("a", "b", "c"):
        assert server.post("/v1/completions", {"model": name, "prompt": "x", "max_tokens": 1}).ok()["model"]


def test_on_this_machine_alone_it_needs_no_names_and_no_key(start):
    server = start("--engine", "fake").ready()
    until(lambda: "stop    Ctrl-C" in "".join(server.log), "it has said all")
    assert not any(line.startswith(("  names ", "  key ")) for line in server.log)


def test_the_example_of_a_config_file_is_what_it_does_without_one(start, tmp_path):
    example = subprocess.run([str(BINARY), "config", "--example"], capture_output=True, text=True, timeout=WAIT_S)
    file = tmp_path / "server.toml"
    file.write_text("".join(line.removeprefix("#") for line in example.stdout.splitlines(keepends=True)))
    told = []
    for flags in ([], ["--config", str(file)]):
        server = start("--engine", "fake", *flags).ready()
        until(lambda: "stop    Ctrl-C" in "".join(server.log), "it has said all")
        told.append("".join(line for line in server.log if line.startswith("  ")).replace(str(server.port), "PORT"))
    assert told[0] == told[1]


def test_503_while_the_model_is_loaded(start):
    server = start("-m", tiny_model(), "-c", "131072")  # a large pool: some time to be asked meanwhile
    seen = []

    def healthy():
        seen.append(server.get("/health"))
        return seen[-1].status == 200
    refused = server.post("/v1/completions", {"prompt": "x"})
    until(healthy, "it is ready")
    assert seen[0].status == 503 and seen[0].json == {"status": "loading"}
    assert refused.status == 503 and refused.headers["retry-after"] and "loaded" in refused.error["message"]
    assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status == 200
    assert server.stop() == 0


def test_a_file_that_may_not_grow_ends_nothing(start, tmp_path):
    with open(tmp_path / "out", "w") as out:
        server = start("--engine", "fake", stdout=out, limits=[(resource.RLIMIT_FSIZE, 0)])
    until(lambda: server.get("/health").status == 200, "it is ready")
    assert server.get("/v1/models").status == 200 and server.stop() == 0
    assert (tmp_path / "out").stat().st_size == 0


def test_a_small_stack_is_room_enough(start):
    server = start("--engine", "fake", limits=[(resource.RLIMIT_STACK, 256 * 1024)]).ready()
    for grammar in ("root ::= " + "(" * 3000 + '"a"' + ")" * 3000, "root ::= " + "(" * 500 + '"a"' + ")" * 500):
        assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 1, "grammar": grammar}).status in (200, 422)
    assert server.get("/health").status == 200


def test_another_name_without_keys_is_refused():
    for flags in (["--allow-host", "llm.example.org"], ["--allow-host", "localhost", "--allow-host", "10.0.0.1"]):
        ran = subprocess.run([str(BINARY), "serve", "--engine", "fake", "--port", "0", *flags], capture_output=True, text=True, timeout=WAIT_S)
        assert ran.returncode == 2 and "--api-key-file" in ran.stderr and flags[-1] in ran.stderr


def test_another_port_of_this_machine_is_no_other_name(start):
    server = start("--engine", "fake", "--allow-host", "localhost:9000", "--allow-host", "[::1]:9000").ready()
    assert server.get("/v1/models", headers={"Host": "localhost:9000"}).status == 200


def test_a_model_that_cannot_be_loaded_ends_it(start):
    server = start("-m", tiny_model(), "-c", str(1 << 24))
    assert server.process.wait(WAIT_S) != 0 and "MiB" in "".join(server.log)


def test_stopped_while_loading(start):
    server = start("-m", tiny_model(), "-c", "131072")
    assert server.stop() is not None


def test_what_it_says_of_itself(tiny):
    told = tiny.get("/v1/capabilities").ok()
    assert told["exact"]["with_neighbours"] and told["interrupt"]["in_prefill"] and told["chat"]
    assert told["limits"]["n_ctx"] == 16384 and told["model"]["name"] == "tiny"
    assert tiny.get("/health").ok()["status"] == tiny.get("/v1/health").ok()["status"] == "ok"
    for path, status in (("/v1/nowhere", 404), ("/v1/completions", 405), ("/", 404)):
        refused = tiny.get(path)
        assert refused.status == status and refused.error["type"] == "invalid_request_error"


# --------------------------------------------------------------------------------------------------------------- end


def test_sigterm_lets_what_runs_end(start):
    server = start("-m", tiny_model(), "-c", "16384").ready()
    live = [Stream(server, "/v1/completions", {**LONG, "max_tokens": 400, "seed": i}) for i in range(4)]
    for one in live:
        one.texts(1)
    server.process.send_signal(signal.SIGTERM)
    for one in live:
        assert finish_of(one.chunks())[0] == "length"
    assert server.process.wait(WAIT_S) == 0


@pytest.mark.parametrize("drain", ["0", "0.1"])
def test_sigterm_tells_every_client(start, drain):
    server = start("-m", tiny_model(), "-c", "65536", "--drain", drain).ready()
    live = [Stream(server, "/v1/completions", {**LONG, "seed": i, "stream_options": {"include_usage": True}}) for i in range(4)]
    for one in live:
        one.texts(1)
    server.pause(live[1].generation).ok()
    whole = Stream(server, "/v1/completions", {**LONG, "stream": False, "fermata": {"client_id": "whole"}})
    until(lambda: server.get("/v1/generations/client:whole").status == 200, "it is there")
    server.process.send_signal(signal.SIGTERM)
    for one in live:
        reason, error, usage = finish_of(one.chunks())
        assert error["code"] == "shutdown" and error["type"] == "server_error" and usage["completion_tokens"] > 0
    while not whole.is_over:
        whole._more()
    assert whole.status == 503 and json.loads(whole.data)["error"]["code"] == "shutdown"
    assert server.process.wait(WAIT_S) == 0


def test_nothing_new_while_it_ends(start):
    server = start("-m", tiny_model(), "-c", "16384").ready()
    live = Stream(server, "/v1/completions", LONG)
    live.texts(1)
    server.process.send_signal(signal.SIGTERM)
    until(lambda: server.get("/health").json["status"] == "draining", "it says so")
    refused = server.post("/v1/completions", {"prompt": "x"})
    assert (refused.status, refused.error["code"]) == (503, "draining") and refused.headers["retry-after"]
    assert server.cancel(live.generation).status == 200, "what runs can still be interrupted"
    finish_of(live.chunks())
    assert server.process.wait(WAIT_S) == 0


def test_a_timeout_is_an_error_not_an_end(tiny):
    asked = {**LONG, "fermata": {"timeout_ms": 100}}
    reason, error, _ = finish_of(Stream(tiny, "/v1/completions", asked).chunks())
    assert reason is None and error["code"] == "timeout" and error["fermata"]["usage"]["completion_tokens"] < 8000
    whole = tiny.post("/v1/completions", {**asked, "stream": False})
    assert (whole.status, whole.error["code"]) == (504, "timeout") and whole.headers["x-should-retry"] == "false"
    assert whole.error["message"] == "the generation was ended by a time limit: it has run for the 100 ms that its request allows"


def all_at_once(server, *signals):
    """Different ones: of one that is sent twice before it is taken there is only one."""
    for one in (signal.SIGSTOP, *signals, signal.SIGCONT):
        server.process.send_signal(one)


def test_a_second_signal_hurries_however_soon_it_comes(start):
    server = start("-m", tiny_model(), "-c", "16384", "--drain", "600").ready()
    live = Stream(server, "/v1/completions", LONG)
    live.texts(1)
    all_at_once(server, signal.SIGTERM, signal.SIGINT)
    assert finish_of(live.chunks())[1]["code"] == "shutdown"
    assert server.process.wait(WAIT_S) == 0


def test_a_third_signal_ends_it(start):
    server = start("-m", tiny_model(), "-c", "16384", "--drain", "600").ready()
    live = Stream(server, "/v1/completions", LONG)
    live.texts(1)
    all_at_once(server, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
    assert server.process.wait(WAIT_S) in (129, 130, 143), "whichever is taken last: one may come before it stands still"


def test_a_signal_while_the_last_lines_are_written_changes_nothing():
    reading, writing = os.pipe()
    fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
    process = subprocess.Popen([str(BINARY), "serve", "--port", "0", "--engine", "fake", "--log-level", "debug"],
                               stdout=subprocess.DEVNULL, stderr=writing)
    try:
        os.close(writing)
        with os.fdopen(reading) as log:
            port = int(re.search(r":(\d+);", log.readline()).group(1))
            for _ in range(100):  # more lines than the pipe holds, which nobody reads: the end waits for them a while
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
                connection.request("GET", "/health")
                connection.getresponse().read()
                connection.close()
            process.send_signal(signal.SIGTERM)
            threads = pathlib.Path(f"/proc/{process.pid}/task")
            until(lambda: len(list(threads.iterdir())) <= 3, "all has ended but who takes signals and who writes the log")
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
    finally:
        process.kill()
        process.wait(WAIT_S)


@pytest.mark.parametrize("how", ["full", "unread", "disk"])
def test_standard_output_that_takes_nothing_holds_up_nothing(start, how):
    with taking_nothing(how) as out:
        server = start("--engine", "fake", stdout=out)
        until(lambda: server.get("/health").status == 200, "it is ready")
        assert server.post("/v1/completions", {"prompt": "x", "max_tokens": 1}).status == 200
        assert server.stop() == 0, "".join(server.log)


def port_listened_at(process):
    """By the kernel: nothing that the server says can be read."""
    def look():
        try:
            sockets = {os.readlink(link) for link in pathlib.Path(f"/proc/{process.pid}/fd").iterdir()}
        except FileNotFoundError:  # closed between the two: it is beginning
            return None
        rows = [line.split() for line in pathlib.Path(f"/proc/{process.pid}/net/tcp").read_text().splitlines()[1:]]
        return next((int(row[1].split(":")[1], 16) for row in rows if row[3] == "0A" and f"socket:[{row[9]}]" in sockets), None)
    return until(look, "it listens")


@pytest.mark.parametrize("how", ["full", "unread", "disk"])
def test_standard_error_that_takes_nothing_holds_up_nothing(how):
    with taking_nothing(how) as err:
        process = subprocess.Popen([str(BINARY), "serve", "--port", "0", "-m", tiny_model(), "-c", "1024"],
                                   stdout=subprocess.DEVNULL, stderr=err)
        try:
            port = port_listened_at(process)

            def status(path):
                connection = http.client.HTTPConnection("127.0.0.1", port, timeout=WAIT_S)
                connection.request("GET", path)
                answer = connection.getresponse()
                answer.read()
                connection.close()
                return answer.status
            until(lambda: status("/health") == 200, "the model is loaded")
            process.send_signal(signal.SIGTERM)
            assert process.wait(WAIT_S) == 0
        finally:
            process.kill()
            process.wait(WAIT_S)


# -------------------------------------------------------------------------------------------------------------- load


def expected(first, n):
    """Every byte of stream n, given its first chunk, whose ids cannot be known."""
    head = {k: first[k] for k in ("id", "object", "created", "model", "system_fingerprint")}
    text = (f"{n:04d};" * 8)[:16 + n % 24]

    def event(choice, **top):
        return "data: " + json.dumps({**head, "choices": [{"index": 0, **choice}], **top}, separators=(",", ":")) + "\n\n"
    out = event({"text": "", "finish_reason": None}, fermata=first["fermata"])
    out += "".join(event({"text": c, "finish_reason": None}) for c in text)
    out += event({"text": "", "finish_reason": "length", "fermata": {"end_reason": "length"}})
    return out + "data: [DONE]\n\n"


async def one_stream(server, n, all_sent):
    reader, writer = await asyncio.open_connection(server.host, server.port)
    cycle = ",".join(str(b) for b in f"{n:04d};".encode())
    body = json.dumps({"prompt": f"p{n}", "grammar": f"cycle:{cycle}", "max_tokens": 16 + n % 24, "stream": True,
                       "fermata": {"session": f"many-{n}"}}).encode()
    writer.write(f"POST /v1/completions HTTP/1.1\r\nHost: {server.host}:{server.port}\r\nContent-Type: application/json\r\n"
                 f"Content-Length: {len(body)}\r\nConnection: close\r\n\r\n".encode() + body)
    await writer.drain()
    all_sent.release()
    raw = await reader.read(-1)
    writer.close()
    head, rest = raw.split(b"\r\n\r\n", 1)
    data = b""
    while rest:
        size, rest = rest.split(b"\r\n", 1)
        data, rest = data + rest[:int(size, 16)], rest[int(size, 16) + 2:]
    assert head.startswith(b"HTTP/1.1 200"), raw[:400]
    first = json.loads(data.split(b"\n\n")[0].removeprefix(b"data: "))
    assert first["fermata"]["session"] == f"many-{n}"
    assert f"x-fermata-generation: {first['fermata']['generations'][0]}".encode() in head
    assert data.decode() == expected(first, n)
    return first["id"]


def test_a_thousand_streams_and_every_byte_of_them(fake):
    async def all_of_them():
        sent = asyncio.Semaphore(0)
        return await asyncio.wait_for(asyncio.gather(*(one_stream(fake, n, sent) for n in range(1000))), 2 * WAIT_S)
    ids = asyncio.run(all_of_them())
    assert len(set(ids)) == 1000


def test_a_huge_prompt_beside_a_live_stream(tiny):  # G1
    live = Stream(tiny, "/v1/completions", LONG)
    live.texts(5)
    before = tiny.stats()
    huge = Stream(tiny, "/v1/completions", {**LONG, "prompt": [800] * 7000, "max_tokens": 1})
    name = huge.generation
    # Both can be interrupted meanwhile, and the calls are answered before the prefill is over.
    until(lambda: tiny.stats()["prefill_rows"] > before["prefill_rows"], "prefill has begun")
    record = tiny.pause(live.generation).ok()
    other = tiny.pause(name).ok()
    assert other["computed"] < other["at"]["token"] == 7000
    computed, decoded = tiny.stats()["prefill_rows"], tiny.stats()["decode_rows"]
    for pause in (record, other):
        tiny.post("/v1/resume", {"pause_id": pause["pause_id"]}).ok(202)
    chunks = huge.chunks()
    after = tiny.stats()
    assert finish_of(chunks)[0] == "length"
    assert tiny.generation(live.generation)["state"] == "running"
    # Beside a stream a chunk has at most 64 rows; between any two the stream has its token.
    n_chunks = (after["prefill_rows"] - computed) / 64
    assert n_chunks > 50 and after["decode_rows"] - decoded >= n_chunks - 2
    tiny.cancel(live.generation).ok()
    finish_of(live.chunks())


def test_equals_take_turns(tiny):  # G2, without priority
    streams = [Stream(tiny, "/v1/completions", {**LONG, "seed": i, "max_tokens": 300}) for i in range(8)]
    preempted = tiny.stats()["preempted"]
    texts = [text_of(s.chunks()) for s in streams]
    assert tiny.stats()["preempted"] == preempted
    for i in (0, 7):
        alone = tiny.post("/v1/completions", {**LONG, "seed": i, "max_tokens": 300, "stream": False}).ok()
        assert texts[i] == alone["choices"][0]["text"], "neighbours change nothing"


def test_every_flag_is_a_variable_too():
    told = subprocess.run([str(BINARY), "serve", "--help"], capture_output=True, text=True, timeout=WAIT_S).stdout
    flags = set(re.findall(r"^  (?:-\w,)?--([\w-]+)", told, re.MULTILINE)) - {"help"}
    named = set(re.findall(r"Env:FERMATA_(\w+)", told))
    assert named == {flag.replace("-", "_").upper() for flag in flags}
    for name, value in (("FERMATA_CTX", "many"), ("FERMATA_EXACT", "perhaps"), ("FERMATA_THREADS", "-1")):
        refused = subprocess.run([str(BINARY), "serve", "--engine", "fake", "--port", "0"], capture_output=True, text=True,
                                 env={**os.environ, name: value}, timeout=WAIT_S)
        assert refused.returncode == 2 and value in refused.stderr, (name, refused.stderr)
