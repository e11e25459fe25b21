"""The real openai client for Node: each scenario of node/pause.mjs is a test."""

import re

import pytest

from nodes import PAUSE_MJS, node

# Written in the script alone; "through" belongs to test_proxy.py.
SCENARIOS = [name for name in re.findall(r"^  async (\w+)\(", PAUSE_MJS.read_text(), re.MULTILINE) if name != "through"]


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_node(pulsing, scenario):
    run = node(pulsing.url, scenario)
    assert run.returncode == 0, run.stderr
