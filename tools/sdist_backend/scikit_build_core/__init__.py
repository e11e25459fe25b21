"""Stands in for the build system that the engine's sdist names. See build.py."""
