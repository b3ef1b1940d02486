"""Arguments of a launch: Python values as the bytes that parameters have."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from .devices import Device

if TYPE_CHECKING:
    from .modules import Kernel


class Arguments:
    """The parameters of one launch, and the memory that they point to."""

    def __init__(
        self, device: Device, kernel: Kernel, args: Sequence[Any] | Mapping[str, Any]
    ) -> None:
        self.parameters: Any = None
