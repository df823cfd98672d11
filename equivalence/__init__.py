"""The judge: runs implementations, watches wire and tools, names where they part."""

__version__ = "0.2.0"
