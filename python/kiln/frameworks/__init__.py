"""Frameworks, unmodified, on Kiln's devices: `python -m kiln` and `activate`."""

from __future__ import annotations

from ..errors import MachineError


def run_script(words: list[str]) -> int:
    """`python -m kiln script.py [arguments]`: the exit status."""
    raise MachineError("this build of Kiln runs no scripts of frameworks")


def activate(**options: object) -> None:
    """Let what this process loads from now on find Kiln's CUDA libraries."""
    raise MachineError("this build of Kiln runs no scripts of frameworks")
