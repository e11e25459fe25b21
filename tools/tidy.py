#!/usr/bin/env python3
"""clang-tidy over every .cc file of the build whose text, or that of a header of ours it includes, changed since it passed.

usage: tools/tidy.py BUILD-FOLDER [FILE…]. What passed is remembered in BUILD-FOLDER/tidy by a hash over the file, its headers and
.clang-tidy, so a second run takes no time and a full first run happens once.
"""

import concurrent.futures
import hashlib
import json
import os
import pathlib
import re
import subprocess
import sys

import tree

_INCLUDE = re.compile(r'^\s*#\s*include\s*"([^"]+)"', re.MULTILINE)


def closure(path, seen):
    """Adds path and the headers of ours it includes, directly or not, to seen."""
    if path in seen or not path.is_file():
        return
    seen.add(path)
    for header in _INCLUDE.findall(path.read_text(encoding="utf-8")):
        for start in (tree.ROOT / "src", tree.ROOT, path.parent):
            closure((start / header).resolve(), seen)


def fingerprint(path):
    seen = set()
    closure(path, seen)
    digest = hashlib.sha256((tree.ROOT / ".clang-tidy").read_bytes())
    for part in sorted(seen):
        digest.update(part.read_bytes())
    return digest.hexdigest()


# Of the tests' Python packages: it takes half the time of Debian's, which is version 14, and knows C++20's coroutines.
_CLANG_TIDY = tree.ROOT / ".deps/venv/bin/clang-tidy"
_FOR_CLANG = ("--extra-arg=-Wno-unknown-warning-option", "--extra-arg=-Wno-deprecated-declarations")


def tidy(build, path):
    run = subprocess.run(
        [str(_CLANG_TIDY), "--quiet", "-p", str(build), *_FOR_CLANG, str(path)],
        capture_output=True, text=True)
    return run.returncode, run.stdout + (run.stderr if run.returncode and not run.stdout else "")


def main():
    build = pathlib.Path(sys.argv[1]).resolve()
    known = {pathlib.Path(entry["file"]).resolve() for entry in json.loads((build / "compile_commands.json").read_text())}
    wanted = [pathlib.Path(name).resolve() for name in sys.argv[2:]] or tree.files(suffixes={".cc"}, under=tree.CODE_FOLDERS)
    passed = build / "tidy"
    passed.mkdir(exist_ok=True)
    todo = {path: passed / fingerprint(path) for path in wanted if path in known}
    todo = {path: stamp for path, stamp in todo.items() if not stamp.exists()}
    failed = 0
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("FERMATA_JOBS", os.cpu_count()))) as pool:
        for (path, stamp), (status, output) in zip(todo.items(), pool.map(lambda p: tidy(build, p), todo)):
            if status == 0:
                stamp.touch()
            else:
                failed += 1
                print(output.strip())
    print(f"clang-tidy: {len(todo) - failed} of {len(todo)} changed files clean")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
