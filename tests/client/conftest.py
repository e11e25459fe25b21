import gc
import os
import resource

import httpx2
import openai
import pytest

from contract import contract
from server import Server, tiny_model, until, WAIT_S

soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
resource.setrlimit(resource.RLIMIT_NOFILE, (min(hard, 8192), hard))  # test_many opens 1,000 sockets, the server as many

# Clients that look around themselves: nothing here goes through a proxy or to a tracing service.
os.environ["NO_PROXY"] = os.environ["no_proxy"] = "127.0.0.1"
os.environ["LANGSMITH_TRACING"] = os.environ["LANGCHAIN_TRACING_V2"] = "false"

PROBE = {"prompt": "Once upon", "max_tokens": 12, "seed": 7}


class Shared:
    """A server for many tests. One that a test brought down is started anew, so that each failure is one test's."""

    def __init__(self, *flags):
        self.flags, self.server, self.probe, self.held = flags, None, None, None

    def get(self):
        if self.server is None or self.server.process.poll() is not None:
            self.server = Server(*self.flags).ready()
            self.held = self.server.held()
            said = self.server.post("/v1/completions", PROBE).ok()["choices"][0]["text"]
            assert self.probe in (None, said)
            self.server.probe = self.probe = said
        return self.server

    def end(self):
        if self.server and self.server.process.poll() is None:
            gc.collect()  # a test's sockets end with it
            until(lambda: all(now <= then for now, then in zip(self.server.held(), self.held)),
                  lambda: f"no more than {self.held} open files and threads; they are {self.server.held()}")
            assert self.server.stop() == 0, "".join(self.server.log)


def shared(*flags):
    made = Shared(*flags)
    yield made
    made.end()


@pytest.fixture(scope="session")
def fake_shared():
    yield from shared("--engine", "fake", "-c", "512")


@pytest.fixture(scope="session")
def pulsing_shared():
    yield from shared("-m", tiny_model(), "-c", "16384", "--model-name", "tiny", "--keep-alive", "0.1")


@pytest.fixture(scope="session")
def tiny_shared():
    yield from shared("-m", tiny_model(), "-c", "16384", "--model-name", "tiny", "--alias", "gpt-4o")


def left_clean(server):
    """Nothing of a test is alive after it, and an unrelated request says what it said before (CASES: CLEAN)."""
    assert server.process.poll() is None, f"it died: {''.join(server.log[-20:])}"
    until(lambda: server.stats()["alive"] == 0, "nothing is alive")
    assert server.post("/v1/completions", PROBE).ok()["choices"][0]["text"] == server.probe


@pytest.fixture
def fake(fake_shared):
    """The engine without a model: bytes as tokens, a pool of 512, {"grammar": "cycle:97,98"} says abababab."""
    yield (server := fake_shared.get())
    left_clean(server)


@pytest.fixture
def tiny(tiny_shared):
    """A real engine with random weights: thousands of tokens a second, chat template, GBNF."""
    yield (server := tiny_shared.get())
    left_clean(server)


@pytest.fixture
def pulsing(pulsing_shared):
    """As tiny, but a silent stream says so ten times a second: a test can wait for keep-alives."""
    yield (server := pulsing_shared.get())
    left_clean(server)


@pytest.fixture
def start():
    """start(*flags): a server of the test's own, not yet ready; it is ended with the test."""
    started = []

    def make(*flags, **more):
        started.append(Server(*flags, **more))
        return started[-1]

    yield make
    for server in started:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait(WAIT_S)


@pytest.fixture
def client(tiny):
    """The openai client, which tries nothing twice, so that a test sees each answer."""
    def check(response):
        asked = (response.request.method, response.request.url.path, response.status_code, response.headers)
        if response.headers["content-type"].startswith("application/json"):
            contract(tiny).check(*asked, response.read())
        else:
            contract(tiny).check_head(*asked)
    http = httpx2.Client(event_hooks={"response": [check]}, timeout=WAIT_S)
    with openai.OpenAI(base_url=f"{tiny.url}/v1", api_key="none", max_retries=0, timeout=WAIT_S, http_client=http) as made:
        yield made
