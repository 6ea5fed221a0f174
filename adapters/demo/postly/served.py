"""Postly as `[tool.nonsuch] app` names it: exports `mcp`. Importing it declares, and connects to nothing."""

from __future__ import annotations

import os
from typing import Final

from .... import App
from .app import postly
from .tokens import issue

mcp: Final[App] = postly(os.environ.get("DATABASE_URL", ""), issue())
