"""The judge: runs implementations, watches wire and tools, names where they part."""
