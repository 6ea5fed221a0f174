"""The app that the conformance suite calls: the tools, resources and prompts it names, declared as any app's.

Knows nothing of the wire; every name and text here is the suite's.
"""

from typing import Final

from nonsuch import Agent, App, define_app_mcp, grant

from .fixture_parts import PERMISSION, ROLE
from .fixture_reading import PROMPTS, RESOURCES
from .fixture_rounds import ROUNDS
from .fixture_tasks import TOOLS as TASKS
from .fixture_tools import TOOLS, Changing

TOKEN: Final = "conformance"
CALLER: Final = Agent("suite", roles=frozenset({ROLE}))
changing: Final = Changing()


def resolve(token: str) -> Agent | None:
    """Return the one caller there is."""
    return CALLER if token == TOKEN else None


app: Final[App] = define_app_mcp(
    changing.registry,
    name="conformance",
    version="1",
    tools={**TOOLS, **ROUNDS, **TASKS, **changing.tools},
    resources=RESOURCES,
    prompts=[*PROMPTS, changing.prompt],
    roles=[ROLE],
    grants=[grant(ROLE, PERMISSION)],
    resolve_token=resolve,
    rate_limits=None,
)
changing.notify = app.notify.lists_changed
