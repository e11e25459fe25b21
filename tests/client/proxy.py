"""A reverse proxy as seen from a connection: bytes go both ways, and silence ends it, as nginx's proxy_read_timeout does."""

import select
import socket
import threading


class IdleProxy:
    """Forwards to a server; cuts a connection on which the server says nothing for idle_s although it was asked."""

    def __init__(self, server, idle_s):
        self.target, self.idle_s = (server.host, server.port), idle_s
        self.n_cut = 0
        self._lock = threading.Lock()
        self._listening = socket.create_server(("127.0.0.1", 0), backlog=64)
        self.host, self.port = self._listening.getsockname()
        self.url = f"http://{self.host}:{self.port}"
        self.key = None  # as a Server has it
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self):
        while True:
            try:
                client, _ = self._listening.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client):
        with client, socket.create_connection(self.target) as server:
            other = {client: server, server: client}
            is_asked = False  # a connection that waits for a request is not idle
            while True:
                ready, _, _ = select.select([client, server], [], [], self.idle_s if is_asked else None)
                if not ready:
                    with self._lock:
                        self.n_cut += 1
                    return
                for side in ready:
                    try:
                        got = side.recv(65536)
                        if not got:
                            return
                        other[side].sendall(got)
                    except OSError:
                        return
                    is_asked = True

    def close(self):
        self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
