"""`python -m nonsuch.adapters.cli`: the same as `nonsuch`."""

from __future__ import annotations

import sys

from .main import main

sys.exit(main())
