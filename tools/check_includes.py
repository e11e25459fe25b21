#!/usr/bin/env python3
"""Fails when a file of src/ includes what its folder may not see. usage: tools/check_includes.py [ROOT]

Direction: base <- engine (its headers, sampling) <- generation <- scheduler <- runtime <- api <- server <- cli. The engines (llama, fake,
attention) are chosen at the top; nobody below runtime knows one. llama.h and llama-common are seen by engine/llama alone,
ggml by engine/attention and engine/llama. tests/ and bench/ may include anything.
"""

import pathlib
import re
import sys

import tree

_ENGINE = {"base", "engine", "engine/sampling"}
_API = {"api/http", "api/openai", "api/openapi"}
MAY_INCLUDE = {  # beside itself
    "base": set(),
    "engine": _ENGINE,
    "engine/sampling": _ENGINE,
    "engine/attention": {"base"},
    "engine/llama": _ENGINE | {"engine/attention"},
    "engine/fake": _ENGINE,
    "generation": _ENGINE,
    "scheduler": _ENGINE | {"generation"},
    "runtime": _ENGINE | {"generation", "scheduler"},
    "api/http": {"base"},
    "api/openai": _ENGINE | {"generation"},
    "api/openapi": _ENGINE | {"generation", "api/http", "api/openai"},
    "api": _ENGINE | {"generation", "runtime", *_API},
    "server": _ENGINE | {"generation", "scheduler", "runtime", "api", *_API},
    "client": {"base"},
    "chat": {"base", "client"},
    "cli": _ENGINE
    | {"generation", "scheduler", "runtime", "server", "engine/llama", "engine/fake", "engine/attention", "api/http", "api/openai", "client", "chat"},
}
# The scripted engine is what unit tests and small benches of these folders run on.
_OF_TESTS = re.compile(r"_(test|bench|fixture)\.(cc|h)$")
TESTS_MAY_INCLUDE = {folder: {"engine/fake"} for folder in ("generation", "scheduler", "runtime", "api", "api/openai", "server")}
GGML_FOLDERS = {"engine/attention", "engine/llama"}
LLAMA_FOLDERS = {"engine/llama"}
THIRD_PARTY_QUOTED = ("hwy/",)  # Highway's own documentation asks for quotes

_INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.MULTILINE)
_ENGINE_HEADER = re.compile(r"^(llama([-.].*)?|ggml([-.].*)?|gguf|common|chat|json-schema-to-grammar)\.h$")


def folder_of(path):
    """'engine/llama' of engine/llama/model.h, 'engine' of engine/engine.h: the longest known prefix."""
    parts = path.split("/")[:-1]
    while parts and "/".join(parts) not in MAY_INCLUDE:
        parts.pop()
    return "/".join(parts) or None


def problem(src, file, quote, header):
    """Why this include of this file (path in src/) is wrong; None when it is not."""
    folder = folder_of(file)
    if folder is None:
        return f"the folder of {file} has no line in tools/check_includes.py; say there what it may include"
    if (src / header).is_file():
        if quote == "<":
            return f'"{header}" is ours and wants quotes'
        allowed = MAY_INCLUDE[folder] | (TESTS_MAY_INCLUDE.get(folder, set()) if _OF_TESTS.search(file) else set())
        target = folder_of(header)
        return None if target == folder or target in allowed else f"src/{folder} may not include {header}"
    name = header.split("/")[-1]
    if quote == "<" and not _ENGINE_HEADER.match(name):
        return None
    if header.startswith(THIRD_PARTY_QUOTED):
        return None
    if ((src / file).parent / header).is_file():
        return f'"{header}" must be written from src/'
    if name.startswith(("ggml", "gguf")):
        return None if folder in GGML_FOLDERS else f"src/{folder} may not see ggml ({header})"
    if "/" in header and (src / header.split("/")[0]).is_dir():
        return f"there is no src/{header}"
    return None if folder in LLAMA_FOLDERS else f"src/{folder} may not see llama.cpp, nor quote what is not ours ({header})"


def problems(root):
    src = pathlib.Path(root) / "src"
    for path in tree.files(root, tree.CODE, ("src",)):
        file = path.relative_to(src).as_posix()
        text = path.read_text(encoding="utf-8")
        for match in _INCLUDE.finditer(text):
            why = problem(src, file, *match.groups())
            if why:
                line = text.count("\n", 0, match.start(2)) + 1
                yield f"src/{file}:{line}: {why}"


def main():
    found = list(problems(sys.argv[1] if len(sys.argv) > 1 else tree.ROOT))
    print("\n".join(found) or "includes point one way")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
