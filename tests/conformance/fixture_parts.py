"""What the parts of the fixture share: who may call, how a tool is declared, a picture and a sound."""

from base64 import b64decode
from collections.abc import Callable
from typing import Any, Final

from nonsuch import Context, tool
from nonsuch.kernel.declare import Action

ROLE: Final = "suite"
PERMISSION: Final = "conformance:run"
PIXEL: Final = b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAFBQIAX8jx0gAAAABJRU5ErkJggg=="
)
SILENCE: Final = b64decode("UklGRiYAAABXQVZFZm10IBAAAAABAAEAQB8AAAB9AAACABAAZGF0YQIAAAA=")

Here = Context[None]
Handler = Callable[..., Any]


class Tools(dict[str, Action]):
    """Hand-written tools by name, the handlers' own."""

    def add(self, description: str, **more: Any) -> Callable[[Handler], Handler]:
        """Declare a handler under its name."""

        def declare(handler: Handler) -> Handler:
            self[handler.__name__] = tool(description, handler, policy=PERMISSION, **more)
            return handler

        return declare
