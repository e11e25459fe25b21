"""A fermata server as a child process, and the plainest way to ask it something."""

import contextlib
import fcntl
import http.client
import json
import os
import pathlib
import queue
import re
import resource
import signal
import subprocess
import threading
import time

from contract import contract

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent
BINARY = pathlib.Path(os.environ.get("FERMATA_BINARY", ROOT / "build/release/src/cli/fermata"))
WAIT_S = float(os.environ.get("FERMATA_WAIT_S", 30))  # bounds every wait; what is waited for comes in milliseconds on a machine that has time


def tiny_model():
    """The random-weight model (tests/model/make_tiny_model.py): real tokens, grammars and chat template."""
    named = os.environ.get("FERMATA_TINY_MODEL")
    found = [named] if named else sorted(str(path) for path in (ROOT / ".deps/tiny").glob("*.gguf"))
    assert found, "there is no tiny model: tools/test client makes it"
    return found[-1]


def until(true, what, wait_s=WAIT_S):
    """Polls until true() is; its last value."""
    end = time.monotonic() + wait_s
    while True:
        value = true()
        if value:
            return value
        assert time.monotonic() < end, f"in {wait_s} s it did not come to this: {what() if callable(what) else what}"
        time.sleep(0.002)


@contextlib.contextmanager
def taking_nothing(how):
    """A descriptor to write to of which nothing comes out: a pipe that is "full" or "unread", or a full "disk"."""
    reading, writing = os.pipe()
    if how == "disk":
        os.close(writing)
        writing = os.open("/dev/full", os.O_WRONLY)
    elif how == "full":
        fcntl.fcntl(writing, fcntl.F_SETPIPE_SZ, 4096)
        os.write(writing, b"x" * 4096)
    elif how == "unread":
        os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)
        if how != "unread":
            os.close(reading)


class Answer:
    def __init__(self, status, headers, body):
        self.status, self.headers, self.body = status, headers, body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        return self.json["error"]

    def ok(self, status=200):
        assert self.status == status, f"{self.status}: {self.body[:500]}"
        return self.json if self.body else None


class Server:
    """Starts `fermata serve`; the address is known at once, readiness is waited for by ready()."""

    def __init__(self, *flags, stdout=subprocess.PIPE, limits=()):
        def limit():
            for what, most in limits:
                resource.setrlimit(what, (most, most))
        self.process = subprocess.Popen([str(BINARY), "serve", "--port", "0", *flags], stdout=stdout,
                                        stderr=subprocess.PIPE, text=True, preexec_fn=limit)
        self._out, self._err = queue.Queue(), queue.Queue()
        self.log = []
        for stream, lines in ((self.process.stdout, self._out), (self.process.stderr, self._err)):
            if stream is None:  # the test has it
                continue
            threading.Thread(target=self._read, args=(stream, lines), daemon=True).start()
        self.url = self._line(self._err, r"listening at (http://\S+);").group(1)
        self.host, port = self.url.removeprefix("http://").rsplit(":", 1)
        self.port = int(port)
        self.key = None

    def _read(self, stream, lines):
        for line in stream:
            self.log.append(line)
            lines.put(line)
        lines.put(None)

    def _line(self, lines, pattern):
        while True:
            line = lines.get(timeout=WAIT_S)
            assert line is not None, f"it ended: {''.join(self.log)}"
            if found := re.search(pattern, line):
                return found

    def ready(self):
        self.model = self._line(self._out, r"fermata serves (\S+) at").group(1)
        return self

    def request(self, method, path, body=None, headers=None, key=None):
        connection = http.client.HTTPConnection(self.host, self.port, timeout=WAIT_S)
        try:
            data = body if body is None or isinstance(body, (bytes, str)) else json.dumps(body)
            all_headers = {"Content-Type": "application/json"} if method != "GET" else {}
            if key or self.key:
                all_headers["Authorization"] = f"Bearer {key or self.key}"
            all_headers.update(headers or {})
            connection.request(method, path, data, {k: v for k, v in all_headers.items() if v is not None})
            answer = connection.getresponse()
            body = answer.read()
            contract(self).check(method, path, answer.status, answer.headers, body)
            return Answer(answer.status, answer.headers, body)
        finally:
            connection.close()

    def get(self, path, **more):
        return self.request("GET", path, **more)

    def post(self, path, body=None, **more):
        return self.request("POST", path, body, **more)

    def stats(self):
        return self.get("/v1/stats").ok()

    def held(self):
        """(open files, threads)"""
        of_process = pathlib.Path(f"/proc/{self.process.pid}")
        return len(list((of_process / "fd").iterdir())), len(list((of_process / "task").iterdir()))

    def generation(self, name):
        return self.get(f"/v1/generations/{name}").ok()

    def wait_for(self, name, state):
        def there():
            found = self.generation(name)
            return found if found["state"] == state else None
        return until(there, f"{name} is {state}")

    def pause(self, name):
        return self.post(f"/v1/generations/{name}/pause")

    def cancel(self, name):
        return self.post(f"/v1/generations/{name}/cancel")

    def stop(self, how=signal.SIGTERM):
        """The exit status; a server that does not end is a failure."""
        if self.process.poll() is None:
            self.process.send_signal(how)
        try:
            return self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise


@contextlib.contextmanager
def serving(*flags):
    server = Server(*flags)
    try:
        yield server.ready()
    finally:
        if server.process.poll() is None:
            server.process.kill()
        server.process.wait(WAIT_S)
