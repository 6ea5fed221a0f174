"""The policies of an app, or of another directory for the same app, as the app itself loads them."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ...kernel.catalog import Catalog
from ...kernel.cedar_text import Policy
from ...kernel.compile import Base
from ...kernel.errors import BootError, Fault, fault
from ...kernel.loader import Sources, load
from ...kernel.policies import Policies
from ..edge import policies
from ..edge.app import App
from ..edge.draft import Draft
from .render import Refused


@dataclass(frozen=True, slots=True, eq=False)
class Rules:
    """Everything that decides for an app, and what is wrong with it."""

    catalog: Catalog
    base: Base
    policies: Policies
    faults: tuple[Fault, ...]
    warnings: tuple[Fault, ...]

    @property
    def all(self) -> tuple[Policy, ...]:
        """The policies of every gate."""
        return (*self.policies.visibility, *self.policies.scope, *self.policies.policy)

    @property
    def own(self) -> tuple[Policy, ...]:
        """The policies that belong to the app: not those that every app has."""
        shipped = (*(f"{each.origin}:" for each in self.base.policies), "<default ")
        return tuple(each for each in self.all if not each.where.startswith(shipped))


def draft_of(app: App) -> Draft:
    """Return what an app that booted declares."""
    return Draft(app.kernel.catalog, app.sources())


def rules_of(app: App | Draft, directory: Path | None = None) -> Rules:
    """Return the policies of an app without faults. Raises: BootError, Refused."""
    found = checked(app, directory)
    if found.faults:
        raise BootError(found.faults)
    return found


def checked(app: App | Draft, directory: Path | None = None) -> Rules:
    """Return the policies of an app, and everything wrong with them and the app. Raises: Refused."""
    if directory is not None and not directory.is_dir():
        raise Refused("X_POLICY_UNREADABLE", f"`{directory}` is no directory")
    about = app if isinstance(app, Draft) else draft_of(app)
    found = load(about.catalog, policies.base(), _sources(about, directory), complete=about.complete)
    faults, warnings = (
        tuple(_below(directory, each) for each in told) for told in (found.faults, found.warnings)
    )
    return Rules(about.catalog, found.base, found.policies, (*about.faults, *faults), warnings)


def _sources(app: Draft, directory: Path | None) -> Sources:
    """Return what the app reads, or the files of another directory with the grants that the app reads."""
    own = app.sources
    if directory is None:
        return own
    read = policies.read(directory)
    lost = tuple(each for each in own.faults if each.code == "X_POLICY_SOURCE_FAILED")
    return Sources(read.policies, read.schemas, read.links, own.grants, (*read.faults, *lost))


def _below(directory: Path | None, each: Fault) -> Fault:
    """Return a fault whose place starts at the working directory, so that an editor finds the file."""
    if directory is None or not each.where or each.where.startswith("<"):
        return each
    return fault(each.code, each.cause, each.fix, where=str(directory / each.where))
