"""One file a command of `python -m equivalence`: it gathers, judges, shows, and returns
the exit code.
"""
