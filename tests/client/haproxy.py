"""HAProxy with the configuration that is shipped, before a server, with a certificate of its own."""

import os
import pathlib
import socket
import subprocess

from server import ROOT, until

CONFIG = ROOT / "deploy" / "haproxy.cfg"


def certificate(folder):
    """(PEM of certificate and key, PEM of the certificate) for localhost and 127.0.0.1."""
    key, own = folder / "key.pem", folder / "own.pem"
    subprocess.run(["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", own, "-days", "2",
                    "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1"],
                   check=True, capture_output=True)
    both = folder / "tls.pem"
    both.write_text(own.read_text() + key.read_text())
    return both, own


class HaProxy:
    def __init__(self, server, folder, **variables):
        self.certificate, self.trust = certificate(pathlib.Path(folder))
        # A port of the kernel's choice: HAProxy gets the socket itself, as from systemd.
        self._socket = socket.create_server(("127.0.0.1", 0), backlog=256)
        self._socket.set_inheritable(True)
        self.port = self._socket.getsockname()[1]
        self.url = f"https://localhost:{self.port}"
        environment = {**os.environ, "FERMATA_BIND": f"fd@{self._socket.fileno()}", "FERMATA_CERT": str(self.certificate),
                       "FERMATA_SERVER": f"{server.host}:{server.port}", **variables}
        self.body = pathlib.Path(folder) / "body"
        self.log = (pathlib.Path(folder) / "haproxy.log").open("w+")
        self.process = subprocess.Popen(["haproxy", "-db", "-f", CONFIG], env=environment, stdout=self.log, stderr=self.log,
                                        pass_fds=[self._socket.fileno()])
        until(lambda: self.curl("/health").stdout == b"200" or self.process.poll() is not None,
              lambda: pathlib.Path(self.log.name).read_text())
        assert self.process.poll() is None, pathlib.Path(self.log.name).read_text()

    def curl(self, path, *flags):
        """Its output is the status; the body is in self.body."""
        return subprocess.run(["curl", "-s", "-o", self.body, "-w", "%{http_code}", "--cacert", self.trust, *flags,
                               self.url + path], capture_output=True, timeout=30)

    def end(self):
        self.process.kill()
        self.process.wait()
        self._socket.close()
        self.log.close()
