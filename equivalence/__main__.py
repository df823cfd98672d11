"""The judge's command line: python -m equivalence COMMAND."""

from __future__ import annotations

import sys

from equivalence.cli import main

sys.exit(main())
