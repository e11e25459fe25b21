"""What README.md shows of the served API works as it stands there; the address alone is another."""

import ast
import builtins
import json
import re
import subprocess
import sys

from server import ROOT, until, WAIT_S

BLOCKS = re.findall(r"^```(\w*)\n(.*?)^```$", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL)
CALLS = [text for _, text in BLOCKS if "curl " in text]
PYTHON = [text for language, text in BLOCKS if language == "python"]


def here(server, text, **changes):
    for before, after in {"localhost:8080": f"{server.host}:{server.port}", **changes}.items():
        assert before in text, f"README.md no longer says {before}"
        text = text.replace(before, after)
    return text


def shell(text):
    return subprocess.Popen(["bash", "-e", "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def objects_of(text):
    """JSON texts one after the other."""
    found, at = [], 0
    while at < len(text):
        value, at = json.JSONDecoder().raw_decode(text, at)
        found.append(value)
        at += len(text[at:]) - len(text[at:].lstrip())
    return found


def test_every_call_is_tried_here():
    assert (len(CALLS), len(PYTHON)) == (2, 1), "a new snippet wants a test"
    assert all("max_tokens" in text for text in (CALLS[0], *PYTHON)), "a first try ends"


def test_the_story_that_is_paused_and_goes_on(tiny):
    # It pauses itself, as README says it can: at thousands of tokens a second nobody else would be in time.
    told = shell(here(tiny, CALLS[0], **{'"client_id": "story"': '"client_id": "story", "pause_at": 50',
                                         '"max_tokens": 800': '"max_tokens": 300, "ignore_eos": true'}))
    until(lambda: tiny.get("/v1/generations/client:story").status == 200, "it is known")
    tiny.wait_for("client:story", "paused")
    control = shell(here(tiny, CALLS[1]))
    out, err = control.communicate(timeout=WAIT_S)
    assert control.returncode == 0, err
    paused, seen, resumed = objects_of(out)
    assert paused["state"] == "paused" and paused["at"]["token"] and seen["next"] and resumed["object"] == "generation"
    rest, _ = told.communicate(timeout=WAIT_S)
    assert told.returncode == 0 and rest.endswith("data: [DONE]\n\n") and '"error"' not in rest
    assert tiny.generation("client:story")["usage"]["completion_tokens"] == 300


def test_the_python_client_gets_the_pause_back_and_goes_on(tiny):
    text = here(tiny, PYTHON[0], **{"stream=True,\n    max_tokens=200": "stream=True, seed=7,\n    max_tokens=200"})
    ran = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, timeout=WAIT_S)
    assert ran.returncode == 0, ran.stderr
    before, pause_id, rest = re.split(r"\n\[(pau_\w+)\]\n", ran.stdout)
    assert before and pause_id and rest


def test_the_samples_of_clients_lack_no_name():
    """Each of Python stands alone: what it names it imports or makes."""
    samples = re.findall(r"^```python\n(.*?)^```$", (ROOT / "docs/clients.md").read_text(), re.MULTILINE | re.DOTALL)
    assert len(samples) == 2
    for sample in samples:
        nodes = list(ast.walk(ast.parse(sample)))
        made = {alias.asname or alias.name for node in nodes if isinstance(node, (ast.Import, ast.ImportFrom)) for alias in node.names}
        made |= {node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        assert {node.id for node in nodes if isinstance(node, ast.Name)} <= made | set(dir(builtins)), sample
