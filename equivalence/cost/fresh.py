"""In a process of its own: the first question and the second one, in seconds.

python -m equivalence.cost.fresh TARGET CALLS URL URL
"""

from __future__ import annotations

import json
import sys
import time

from equivalence.cost.agents import ask
from equivalence.runs.implementation import Implementation


def main(target: str, calls: str, *urls: str) -> None:
    """Print the seconds of each question, as JSON."""
    agent = Implementation(target, target=target).load()
    seconds = []
    for url in urls:
        began = time.perf_counter()
        ask(agent, url, int(calls))
        seconds.append(time.perf_counter() - began)
    sys.stdout.write("\n" + json.dumps(seconds))  # to the process that measures


if __name__ == "__main__":
    main(*sys.argv[1:])
