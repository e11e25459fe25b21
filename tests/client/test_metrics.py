"""What /metrics says, against what a client counted (Prometheus' own parser reads it)."""

import json
import pathlib
import re
import time

from prometheus_client.parser import text_string_to_metric_families

from server import tiny_model, until, WAIT_S
from stream import Stream

ROOT = pathlib.Path(__file__).resolve().parents[2]
ASKED = {"prompt": "metrics", "ignore_eos": True, "seed": 4}


def families(server, **more):
    answer = server.get("/metrics", **more)
    assert answer.status == 200 and answer.headers["content-type"].startswith("text/plain; version=0.0.4")
    return {family.name: family for family in text_string_to_metric_families(answer.body.decode())}


def samples(server):
    """{(name, (value of each label, sorted by label)): value}"""
    return {(sample.name, tuple(value for _, value in sorted(sample.labels.items()))): sample.value
            for family in families(server).values() for sample in family.samples}


def complete(server, n_tokens, **more):
    return server.post("/v1/completions", {**ASKED, "max_tokens": n_tokens, **more}).ok()


def test_counts_are_those_of_a_client(start):
    server = start("-m", tiny_model()).ready()
    answers = [complete(server, n) for n in (1, 5, 30)]
    held = Stream(server, "/v1/completions", {**ASKED, "max_tokens": 12, "stream": True, "fermata": {"pause_at": 6}})
    record = server.wait_for(held.generation, "paused")["pause"]
    during = samples(server)
    assert during["fermata_generations", ("paused",)] == 1 and during["fermata_generations_waiting", ("pause_at",)] == 1
    server.post("/v1/resume", {"pause_id": record["pause_id"]}).ok(202)
    held.chunks()
    stopped = Stream(server, "/v1/completions", {**ASKED, "max_tokens": 4000, "stream": True})
    stopped.texts(3)
    server.post(f"/v1/generations/{stopped.generation}/pause").ok()
    server.cancel(stopped.generation).ok()
    stopped.chunks()
    n_stopped = server.generation(stopped.generation)["usage"]["completion_tokens"]

    seen = samples(server)
    used = [answer["usage"] for answer in answers]
    assert seen["fermata_generations_ended_total", ("length",)] == 4
    assert seen["fermata_generations_ended_total", ("cancelled",)] == 1
    assert seen["fermata_generated_tokens_count", ()] == 5
    assert seen["fermata_generated_tokens_sum", ()] == sum(u["completion_tokens"] for u in used) + 12 + n_stopped
    assert seen["fermata_prompt_tokens_sum", ()] == 5 * used[0]["prompt_tokens"]
    cached = [u["prompt_tokens_details"]["cached_tokens"] for u in used]
    assert seen["fermata_prompt_tokens_cached_total", ()] >= sum(cached) > 0
    assert seen["fermata_time_to_first_token_seconds_count", ()] == 5
    # One less than tokens for each; and a pause lies between two tokens of the held one, while the stopped one ended in its.
    assert seen["fermata_inter_token_seconds_count", ()] == (0 + 4 + 29) + (11 - 1) + (n_stopped - 1)
    assert seen["fermata_pauses_total", ("user", "pause_at")] == 1 and seen["fermata_pauses_total", ("user", "user")] == 1
    assert seen["fermata_paused_seconds_count", ()] == 2
    assert seen["fermata_frozen_seconds_count", ("user",)] == 1, "pause_at was asked for by nobody just now"
    assert seen["fermata_released_seconds_sum", ("user",)] <= seen["fermata_frozen_seconds_sum", ("user",)]
    assert all(value == 0 for (name, _), value in seen.items() if name in ("fermata_generations", "fermata_generations_waiting"))


def test_steps_and_cells_add_up(start):
    server = start("-m", tiny_model(), "-c", "2048").ready()
    complete(server, 40)
    stats = server.stats()
    seen = samples(server)
    assert sum(value for (name, _), value in seen.items() if name == "fermata_steps_total") == stats["steps"]
    assert seen["fermata_step_rows_sum", ("decode",)] == stats["decode_rows"] == seen["fermata_step_rows_count", ("decode",)]
    assert seen["fermata_step_rows_sum", ("prefill",)] == stats["prefill_rows"]
    assert seen["fermata_step_seconds_count", ("decode",)] == seen["fermata_step_rows_count", ("decode",)]

    def cells():
        now = samples(server)
        return {use: now["fermata_kv_cells", (use,)] for use in ("live", "cached", "free")}
    assert sum(cells().values()) == 2048
    held = Stream(server, "/v1/completions", {**ASKED, "prompt": "other", "max_tokens": 60, "stream": True, "fermata": {"pause_at": 50}})
    server.wait_for(held.generation, "paused")
    until(lambda: cells()["live"] > 50 and cells()["cached"] > 40, cells)
    assert sum(cells().values()) == 2048
    server.cancel(held.generation).ok()
    until(lambda: cells()["live"] == 0, cells)


def test_every_name_is_documented_and_every_documented_name_there(start):
    server = start("--engine", "fake").ready()
    table = (ROOT / "docs/metrics.md").read_text(encoding="utf8").split("## What people ask")[0]
    documented = {}
    for cell in re.findall(r"^\| (`.*?`) \|", table, re.MULTILINE):
        for name, labels in re.findall(r"`(\w+)(?:\{(.*?)\})?`", cell):
            documented[name] = set(filter(None, (labels or "").split(", ")))
    told = {}
    for family in families(server).values():
        name = family.name + ("_total" if family.type == "counter" else "")
        told[name] = {label for sample in family.samples for label in sample.labels} - {"le"}
        assert family.documentation
    assert documented == told
    queries = (ROOT / "docs/metrics.md").read_text(encoding="utf8").split("## What people ask")[1]
    dashboard = json.loads((ROOT / "deploy/grafana.json").read_text(encoding="utf8"))
    asked = [target["expr"] for panel in dashboard["panels"] for target in panel["targets"]]
    coming = (ROOT / "docs/coming-from-llama-server.md").read_text(encoding="utf8").split("## Metrics")[1].split("##")[0]
    for name in re.findall(r"\b(?:fermata|process)_\w+", " ".join([queries, coming, *asked])):
        assert any(name in (known, known + "_sum", known + "_count", known + "_bucket") for known in told), name


def test_the_build_is_the_one_that_says_so(start):
    server = start("--engine", "fake").ready()
    version = server.get("/openapi.json").ok()["info"]["version"]
    seen = samples(server)
    assert version and seen["fermata_build_info", (version,)] == 1


def test_figures_of_the_process_are_those_of_the_kernel(start):
    server = start("--engine", "fake").ready()
    seen = samples(server)
    n_files, n_threads = server.held()
    status = pathlib.Path(f"/proc/{server.process.pid}/status").read_text(encoding="utf8")
    resident = int(status.split("VmRSS:")[1].split()[0]) * 1024
    assert abs(seen["process_resident_memory_bytes", ()] - resident) < 8 << 20
    assert n_files <= seen["process_open_fds", ()] <= n_files + 3 and seen["process_threads", ()] == n_threads
    assert 0 <= time.time() - seen["process_start_time_seconds", ()] < 2 * WAIT_S
    assert 0 <= seen["process_cpu_seconds_total", ()] < 2 * WAIT_S, "in ticks of 10 ms"
