"""The version of the library, which is the distribution's."""

from ._library import c, text

__version__ = text(c.version())
