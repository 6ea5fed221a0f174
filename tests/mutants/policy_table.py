"""The mutants of the policy side: slices, memos, reload, encoder, loader, errors. Runs nothing."""

from __future__ import annotations

from typing import Final

from .mutant import mutant

_ASK: Final = "kernel.judge:Judge._ask"
_DECIDE: Final = "kernel.judge:Judge._decide"
_PERMITS: Final = "kernel.judge:Judge.permits"
_MISSING: Final = "kernel.judge:Judge._of_missing"
_CALLER: Final = "kernel.judge:Judge.caller"
_INDEX: Final = "kernel.policies:Index.__init__"
_SLICE: Final = "kernel.policies:Index.slice"
_ABOUT: Final = "kernel.policies:Policies.about"
_RECORD: Final = "kernel.shapes:encode_fields"
_LONG: Final = "kernel.shapes:_long"
_GATE: Final = "kernel.confinement:_gate"
_READ: Final = "kernel.reading:_read_one"
_LOADED: Final = "adapters.edge.app:judge_from"
_ERRED: Final = "kernel.cedar:_decision"
_KEPT: Final = 'self.__dict__.setdefault("kept", {}).setdefault'
_DENIED: Final = (
    "            if not decision.allow:\n                return decision\n        return decision"
)

_OF_SLICES: Final = (
    mutant(
        "anyone-lost",
        "a slice holds no policy whose head names nobody",
        (_SLICE, "{ANYONE, *principals}", "{*principals}"),
        first="every head is found",
    ),
    mutant(
        "anything-lost",
        "a slice holds no policy whose head names nothing",
        (_SLICE, "{ANYONE, *resources}", "{*resources}"),
        first="every head is found",
    ),
    mutant(
        "type-lost",
        "a slice holds no policy about a type of principal",
        ("kernel.judge:_keys", "[(type(party).__name__,), _self(party)", "[_self(party)"),
        first="every head is found",
    ),
    mutant(
        "self-lost",
        "a slice holds no policy about one principal",
        ("kernel.judge:_keys", "_self(party), ", ""),
        first="every head is found",
    ),
    mutant(
        "kind-lost",
        "a slice holds no policy about a type of resource",
        (_ASK, "resources = [(gate.kind,), *", "resources = [*"),
        first="every head is found",
    ),
    mutant(
        "direct-parents",
        "a slice is found by the direct parents only",
        (_SLICE, "{ANYONE, *principals}", "{ANYONE, *list(principals)[:3]}"),
        first="index over hierarchies",
    ),
    mutant(
        "no-action-ancestors",
        "a policy about a permission is about no tool",
        (_ABOUT, "(entry.permission, ANY)", "()"),
        first="every head is found",
    ),
    mutant(
        "any-lost",
        "a policy about every permission is about no tool",
        (_ABOUT, "(entry.permission, ANY)", "(entry.permission,)"),
        first="every head is found",
    ),
    mutant(
        "exact-as-group",
        "an exact head on a permission is about its tools",
        (_ABOUT, " if not p.exact", ""),
        first="head covers tool",
    ),
    mutant(
        "first-action",
        "of a set of actions the first one counts",
        (
            "kernel.cedar_text:_actions",
            "frozenset(uid.id for uid in uids)",
            "frozenset(uid.id for uid in list(uids)[:1])",
        ),
        first="head covers tool",
    ),
    mutant(
        "in-as-type",
        "a head that names an entity is filed under its type",
        ("kernel.cedar_text:_key", "return (str(uid.type), uid.id)", "return (str(uid.type),)"),
        first="every head is found",
    ),
    mutant(
        "last-of-head",
        "of the policies with one head the last one counts",
        (
            _INDEX,
            "self._by_head.setdefault((policy.principal, policy.resource), []).append(policy)",
            "self._by_head[(policy.principal, policy.resource)] = [policy]",
        ),
        first="every head is found",
    ),
    mutant(
        "reads-lost",
        "what `has` reads of the arguments is not sent",
        ("kernel.cedar_text:reads", "found.add(names[0])", "pass"),
        first="every end is met",
    ),
)

_OF_MEMOS: Final = (
    mutant(
        "memo-of-anybody",
        "what was settled for one caller answers for all",
        (
            _PERMITS,
            "return self._settled(caller, entry, ident)",
            f"return {_KEPT}(entry, self._settled(caller, entry, ident))",
        ),
        first="no other question",
    ),
    mutant(
        "memo-of-an-id",
        "what was asked for one caller answers for all of its id",
        (
            _DECIDE,
            "self._asked(caller, entry, gate.index.named((gate.kind, ident)))",
            f"{_KEPT}((caller.principal.id, entry, ident), "
            "self._asked(caller, entry, gate.index.named((gate.kind, ident))))",
        ),
        first="no other question",
    ),
    mutant(
        "memo-without-facts",
        "what a predicate said first of a principal counts for ever",
        (
            _CALLER,
            "return self._known(principal, tuple(asked))",
            f"return {_KEPT}(principal, self._known(principal, tuple(asked)))",
        ),
        first="no other question",
    ),
    mutant(
        "memo-without-row",
        "the policies found for one row answer for all rows",
        (
            _DECIDE,
            "self._asked(caller, entry, gate.index.named((gate.kind, ident)))",
            f"{_KEPT}((caller, entry), self._asked(caller, entry, gate.index.named((gate.kind, ident))))",
        ),
        first="no other question",
    ),
    mutant(
        "row-not-named",
        "no head names a row",
        ("kernel.policies:Index.named", "key if key in self._named else None", "None"),
        first="every head is found",
    ),
    mutant(
        "memo-without-arguments",
        "what was settled without arguments answers with any",
        (_PERMITS, "if context is NO_ARGUMENTS:", "if True:"),
        first="slice is whole",
    ),
    mutant(
        "memo-of-a-name",
        "the entities of one caller are those of all of its id",
        (
            _DECIDE,
            "self._held(caller, gate.schema)",
            f"{_KEPT}((caller.principal.id, gate.schema), self._held(caller, gate.schema))",
        ),
        first="no other question",
    ),
)

_OF_RELOADS: Final = (
    mutant(
        "swap-keeps-memos",
        "a reload keeps the memos of the old set",
        (
            "kernel.gates:Kernel.swap",
            "self.warnings, self._viewer = ",
            "old = self.judge\n"
            "        judge._plain, judge._asked, judge._settled = old._plain, old._asked, old._settled\n"
            "        self.warnings, self._viewer = ",
        ),
        first="a revoked grant is refused",
    ),
    mutant(
        "swap-keeps-views",
        "a reload keeps the views that were made before",
        (
            "kernel.gates:Kernel.view_for",
            "self._viewer.view_for(principal)",
            f"{_KEPT}(principal, self._viewer.view_for(principal))",
        ),
        first="a revoked grant is refused",
    ),
    mutant(
        "swap-in-flight",
        "a request under way takes the new set for the gates that are left",
        (
            "kernel.gates:Kernel.invoke",
            "_decide(view, entry, ",
            '_decide(type(view)(**{name: self.judge if name == "judge" else getattr(view, name)'
            " for name in view.__dataclass_fields__}), entry, ",
        ),
        first="reload is whole",
    ),
    mutant(
        "swap-never",
        "a reload is said to be taken and is not",
        ("adapters.edge.reload:reload_policies", "app.kernel.swap(judge, warnings)", "pass"),
        first="a revoked grant is refused",
    ),
    mutant(
        "broken-taken",
        "a set with faults is taken",
        (_LOADED, "if loaded.faults:", "if False:"),
        first="a revoked grant is refused",
    ),
    mutant(
        "first-fault",
        "only the first fault is said",
        (_LOADED, "raise BootError(loaded.faults)", "raise BootError(loaded.faults[:1])"),
        first="a revoked grant is refused",
    ),
    mutant(
        "source-forgiven",
        "a source of grants that raises grants nothing and is no fault",
        ("adapters.edge.policies:gather", "faults.append(", "str("),
        first="a revoked grant is refused",
    ),
)

_OF_VALUES: Final = (
    mutant(
        "raw",
        "an object in a row or an argument is passed as it came",
        (
            "kernel.shapes:_at",
            "return encode(value)",
            "return value if isinstance(value, dict) else encode(value)",
        ),
        first="each other value",
    ),
    mutant(
        "string-takes-object",
        "an object stands where a text is declared",
        (
            "kernel.shapes:_string",
            "if not isinstance(value, str):",
            "if isinstance(value, dict):\n        return value\n    if not isinstance(value, str):",
        ),
        first="each other value",
    ),
    mutant(
        "string-takes-anything",
        "whatever stands where a text is declared is written as one",
        (
            "kernel.shapes:_string",
            'raise Unencodable("must be a string")',
            "return str(value)",
        ),
        first="each other value",
    ),
    mutant(
        "keys-of-users",
        "the keys of a map are those of a record",
        (
            "kernel.shapes:_map_of",
            'return [{"k": _string(key), "v": _at("value", item.encode, value)} for',
            'return {} if not held else [{_string(key): _at("value", item.encode, value)} for',
        ),
        first="what was sent",
    ),
    mutant(
        "values-of-users",
        "the values of a map are passed as they came",
        (
            "kernel.shapes:_map_of",
            '_at("value", item.encode, value)',
            "value",
        ),
        first="each other value",
    ),
    mutant(
        "any-length",
        "an integer of more than 64 bits is sent",
        (_LONG, "if not LONG_MIN <= number <= LONG_MAX:", "if False:"),
        first="each other value",
    ),
    mutant(
        "off-by-one",
        "the largest integer is refused",
        (_LONG, "number <= LONG_MAX", "number < LONG_MAX"),
        first="what was sent",
    ),
    mutant(
        "true-is-one",
        "true stands where an integer is declared",
        (_LONG, "isinstance(number, bool) or ", ""),
        first="each other value",
    ),
    mutant(
        "null-is-empty",
        "what is absent is sent as an empty text",
        (
            _RECORD,
            "elif each.required:",
            'elif each.shape.text == "String" and not each.required:\n'
            '            record[each.name] = ""\n        elif each.required:',
        ),
        first="what was sent",
    ),
    mutant(
        "nothing-is-missing",
        "what is required and absent is left out",
        (_RECORD, "elif each.required:", "elif False:"),
        first="each other value",
    ),
    mutant(
        "caller-refers",
        "what a caller sends names an entity",
        ("kernel.shapes:_annotated", "if not around.refers:", "if False:"),
        first="no entity of a caller",
    ),
    mutant(
        "reference-in-union",
        "an optional reference of a row is a text",
        (
            "kernel.shapes:field_shape",
            "_annotated(without_none(info.annotation)[0], info.metadata, around)",
            "shape_of(without_none(info.annotation)[0], around)",
        ),
        first="entities of rows",
    ),
    mutant(
        "enum-by-name",
        "an enumeration is sent by its name",
        ("kernel.shapes:_string", "str(value.value)", "value.name"),
        first="what was sent",
    ),
)

_OF_LOADERS: Final = (
    mutant(
        "catch-all",
        "a policy that names no action is taken, for the gate of visibility",
        (
            _GATE,
            "if policy.actions is None:",
            'if policy.actions is None:\n        return "visibility"\n    if False:',
        ),
        first="a broken set is refused",
    ),
    mutant(
        "two-gates",
        "a policy about actions of two gates is taken",
        (_GATE, "if len(gates) != 1:", "if not gates:"),
        first="a broken set is refused",
    ),
    mutant(
        "shows-all",
        "an operator's policy may permit to see every tool",
        (_GATE, "len(policy.resource) < 2", "False"),
        first="a broken set is refused",
    ),
    mutant(
        "shows-all-of-a-type",
        "an operator's policy may permit to see every audience by its type",
        (_GATE, "len(policy.resource) < 2", "len(policy.resource) < 1"),
        first="a broken set is refused",
    ),
    mutant(
        "ours-is-anybodys",
        "an operator's policy may permit what ours do",
        (
            "kernel.confinement:_ours",
            "return reading.found[policy.id].source in reading.shipped",
            "return True",
        ),
        first="a broken set is refused",
    ),
    mutant(
        "unknown-action",
        "a policy about no tool and no permission is taken",
        ("kernel.confinement:_known", "for name in unknown:", "unknown = []\n    for name in unknown:"),
        first="a broken set is refused",
    ),
    mutant(
        "id-twice",
        "two policies share an id",
        (_READ, "if held.id in reading.found:", "if False:"),
        first="a broken set is refused",
    ),
    mutant(
        "unlinked",
        "a template that nothing links is a policy about everybody",
        (
            "kernel.cedar_text:parse_one",
            'return Template(node.annotations.get("id") or ident, slots, node)',
            "bare = replace(node, principal=pst.ScopeAny(), resource=pst.ScopeAny())\n"
            '        return _policy(bare, node.annotations.get("id") or ident, where)',
        ),
        first="unlinked decides nothing",
    ),
    mutant(
        "unvalidated",
        "what the strict validator refuses is taken",
        (
            "kernel.validation:_Check.run",
            "in sorted(cedar.invalid(policies, against), key=_last_what_follows):",
            "in ():",
        ),
        first="a broken set is refused",
    ),
    mutant(
        "has-forgiven",
        "a `has` of what nothing has is taken, with the forbid behind it",
        ("kernel.validation:_Check.run", "self._of_nothing(sound, against)", "pass"),
        first="a broken set is refused",
    ),
    mutant(
        "gates-unvalidated",
        "policies of visibility and scope are not validated",
        ("kernel.validation:validate", "[*gates.visibility, *gates.scope]", "[]"),
        first="a broken set is refused",
    ),
    mutant(
        "depth-unchecked",
        "text of any depth reaches the parser",
        (_READ, "if strained is not None:", "if False:"),
        first="a broken set is refused",
    ),
    mutant(
        "chains-unchecked",
        "text of any chain reaches the parser",
        (
            "kernel.policy_text:_Load.add",
            "if max(self.links, *self.chains.values(), 0) > MAX_LINKS:",
            "if False:",
        ),
        first="a broken set is refused",
    ),
    mutant(
        "prefixes-unchecked",
        "any number of negations reaches the parser",
        (
            "kernel.policy_text:_Load.add",
            "max(self.depth, self.prefixes, self.branches)",
            "max(self.depth, self.branches)",
        ),
        first="a broken set is refused",
    ),
    mutant(
        "syntax-forgiven",
        "a policy that does not parse is left out",
        (
            _READ,
            'reading.refuse("X_POLICY_SYNTAX", source.where(at), told, advice(told))',
            "pass",
        ),
        first="a broken set is refused",
    ),
)

_OF_ERRORS: Final = (
    mutant(
        "missing-asked",
        "policies are asked about a row that is not there",
        (_MISSING, "blind=True", "blind=False"),
        first="missing is never read",
    ),
    mutant(
        "missing-permitted",
        "what would read a row that is not there does not deny",
        (_MISSING, 'Decision(False, errors=("<missing>",)) if readers else decision', "decision"),
        first="missing is never read",
    ),
    mutant(
        "missing-silences",
        "no forbid speaks of a row that is not there",
        (_MISSING, "if decision.determining and not decision.allow:", "if False:"),
        first="missing is never read",
    ),
    mutant(
        "error-of-the-human",
        "an error of the person behind an agent is ignored",
        (
            _DECIDE,
            _DENIED,
            "            if not (decision.allow or (decision.errors and party is not asked.parties[0][0])):\n"
            "                return decision\n        return Decision(True)",
        ),
        first="an error of the human denies",
    ),
    mutant(
        "either-acts",
        "one of the two parties is enough to act",
        (_DECIDE, "if not decision.allow:", "if decision.allow:"),
        first="permit is its human's",
    ),
    mutant(
        "reasons-of-a-permit",
        "an error tells what had permitted",
        (
            _ERRED,
            "return Decision(False, errors=tuple(",
            "return Decision(False, tuple(sorted(ids[each] for each in diagnostics.reasons)), tuple(",
        ),
        first="slice is whole",
    ),
    mutant(
        "erring-forbid-skipped",
        "an error denies only when nothing permits",
        (_ERRED, "if errors:", "if errors and not reasons:"),
        first="slice is whole",
    ),
    mutant(
        "wrong-culprit",
        "an error is said to be of the first policy",
        ("kernel.cedar:_erring", "ids.get(place[1], ", 'ids.get("p0", '),
        first="slice is whole",
    ),
    mutant(
        "row-misfit-forgiven",
        "a row that does not fit its type is left out",
        (
            _PERMITS,
            'return Decision(False, errors=("<resource>",))',
            "return self._decide(caller, entry, ident, context, None)",
        ),
        first="every end is met",
    ),
    mutant(
        "misfit-forgiven",
        "arguments that do not fit are not sent",
        (
            "kernel.gates:_parsed",
            "return InvalidArguments((Issue(fault.path, fault.problem),))",
            "context = '{\"args\": {}}'",
        ),
        first="every end is met",
    ),
)

POLICY_MUTANTS: Final = (*_OF_SLICES, *_OF_MEMOS, *_OF_RELOADS, *_OF_VALUES, *_OF_LOADERS, *_OF_ERRORS)
