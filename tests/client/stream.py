"""A stream over a socket of our own: every byte kept, closed as rudely as a test likes."""

import json
import socket
import struct

from contract import check_event, contract
from server import WAIT_S


class Stream:
    """Sends a request and reads the answer as it comes. `raw`: all bytes; `data`: the body without its chunking."""

    def __init__(self, server, path, body, headers=None, method="POST", receive_bytes=None):
        self.socket = socket.socket()
        if receive_bytes:
            self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_bytes)
        self.socket.settimeout(WAIT_S)
        self.socket.connect((server.host, server.port))
        data = b"" if body is None else json.dumps(body).encode()
        lines = [f"{method} {path} HTTP/1.1", f"Host: {server.host}:{server.port}", "Content-Type: application/json",
                 f"Content-Length: {len(data)}", *(f"{k}: {v}" for k, v in (headers or {}).items())]
        if server.key:
            lines.append(f"Authorization: Bearer {server.key}")
        self._asked, self._check = (contract(server), method, path), None
        self.socket.sendall("\r\n".join(lines).encode() + b"\r\n\r\n" + data)
        self.raw, self.data = bytearray(), bytearray()
        self._unread = bytearray()  # of the body, still chunked
        self._taken = 0      # of data, by lines
        self.status, self.headers, self.is_over = None, {}, False

    def _more(self):
        got = self.socket.recv(65536)
        self.raw += got
        if not got:
            self.is_over = True
            return False
        if self.status is None:
            if b"\r\n\r\n" not in self.raw:
                return True
            head, got = bytes(self.raw).split(b"\r\n\r\n", 1)
            first, *rest = head.decode("latin-1").split("\r\n")
            self.status = int(first.split()[1])
            self.headers = {line.split(":", 1)[0].lower(): line.split(":", 1)[1].strip() for line in rest}
            contract_of, method, path = self._asked
            self._check = contract_of.check_head(method, path, self.status, self.headers)
        self._unread += got
        self._unchunk()
        return True

    def _unchunk(self):
        if "transfer-encoding" not in self.headers:
            self.data += self._unread
            self._unread.clear()
            self.is_over = self.is_over or len(self.data) >= int(self.headers.get("content-length", 1 << 60))
            return
        while (line := self._unread.find(b"\r\n")) >= 0:
            n = int(self._unread[:line], 16)
            begin, end = line + 2, line + 2 + n
            if len(self._unread) < end + 2:
                return
            assert self._unread[end:end + 2] == b"\r\n"
            self.data += self._unread[begin:end]
            del self._unread[:end + 2]
            if n == 0:
                self.is_over = True
                return

    def head(self):
        while self.status is None:
            assert self._more(), "closed before the headers"
        return self

    def event(self):
        """The next event as {field: value}, comments left out; None when the stream is over."""
        while True:
            end = self.data.find(b"\n\n", self._taken)
            if end >= 0:
                text = self.data[self._taken:end].decode()
                self._taken = end + 2
                fields = [line.split(": ", 1) for line in text.split("\n") if not line.startswith(":")]
                if fields:
                    check_event(self._check, dict(fields))
                    return dict(fields)
            elif self.is_over or not self._more():
                return None

    def chunk(self):
        """The next data event as an object, "[DONE]", or None."""
        event = self.event()
        if event is None or event["data"] == "[DONE]":
            return event and "[DONE]"
        assert set(event) == {"data"}, f"a completion stream has nothing but data: {event}"
        return json.loads(event["data"])

    def chunks(self):
        """All that come, "[DONE]" included."""
        found = []
        while (chunk := self.chunk()) is not None:
            found.append(chunk)
        return found

    def texts(self, n):
        """Reads until n chunks with text came; their text."""
        found = []
        while len(found) < n:
            chunk = self.chunk()
            assert isinstance(chunk, dict), f"it ended after {len(found)} of {n}: {chunk}"
            if text := text_of([chunk]):
                found.append(text)
        return "".join(found)

    @property
    def generation(self):
        assert self.head().status == 200, bytes(self.raw)
        return self.headers["x-fermata-generation"]

    def finish(self):
        """FIN: as a client that ends."""
        self.socket.close()

    def reset(self):
        """RST: as a client that crashed."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.socket.close()


def text_of(chunks):
    parts = []
    for chunk in chunks:
        for choice in chunk.get("choices", []) if isinstance(chunk, dict) else []:
            parts.append(choice["text"] if "text" in choice else choice["delta"].get("content") or "")
    return "".join(parts)


def finish_of(chunks):
    """(finish_reason or None, error or None, usage or None); asserts that it is a proper end."""
    assert chunks and chunks[-1] == "[DONE]", f"no [DONE]: {chunks[-2:]}"
    objects = chunks[:-1]
    reasons = [c["choices"][0]["finish_reason"] for c in objects if c.get("choices") and c["choices"][0]["finish_reason"]]
    errors = [c["error"] for c in objects if "error" in c]
    usages = [c["usage"] for c in objects if c.get("usage")]
    assert len(reasons) + len(errors) == 1, f"one end: {reasons} {errors}"
    assert len(usages) <= 1
    if errors:
        assert objects[-1] == {"error": errors[0]}, "an error is the last event and has no other key"
    return (reasons or [None])[0], (errors or [None])[0], (usages or [None])[0]
