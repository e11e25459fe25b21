"""The files of this project, for the checkers: everything but what is fetched, built or version control's own."""

import os
import pathlib

ROOT = pathlib.Path(__file__).resolve().parent.parent
_SKIPPED = {".git", ".deps", ".cache", "__pycache__"}


def files(root=ROOT, suffixes=None, under=("",)):
    """Paths below root (sorted), of the given suffixes, in the given folders."""
    found = []
    for top in under:
        for folder, folders, names in os.walk(pathlib.Path(root) / top):
            folders[:] = [f for f in folders if f not in _SKIPPED and f != "build" and not f.startswith("build-")]
            found += [pathlib.Path(folder) / name for name in names]
    return sorted({f for f in found if (suffixes is None or f.suffix in suffixes) and not f.is_symlink()})


CODE = {".h", ".cc"}
CODE_FOLDERS = ("src", "tests", "bench")
