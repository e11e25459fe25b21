"""Answers the two questions `pip download` asks of an sdist: what it needs to build (nothing) and its metadata.

The sdist is only fetched and unpacked here, never built as a Python package; with this stand-in on PYTHONPATH pip neither
downloads nor runs a third party's build system. pip runs it inside the unpacked sdist, which carries PKG-INFO.
"""

import email
import pathlib
import shutil


def get_requires_for_build_wheel(config_settings=None):
    return []


def prepare_metadata_for_build_wheel(metadata_directory, config_settings=None):
    package = email.message_from_string(pathlib.Path("PKG-INFO").read_text(encoding="utf-8"))
    folder = pathlib.Path(metadata_directory) / f"{package['Name'].replace('-', '_')}-{package['Version']}.dist-info"
    folder.mkdir()
    shutil.copy("PKG-INFO", folder / "METADATA")
    return folder.name
