"""The mutants of what MCP serves beside calls: lists, resources, prompts, completions, streams, rounds.

Numbers with an M are those of the list of leaks that a suite must see; the others are ours. Runs nothing.
"""

from __future__ import annotations

from typing import Final

from .mutant import mutant

_CALL: Final = "adapters.mcp.tools:call"
_REPLY: Final = "return answer(request, asked.name, entry, outcome)"
_LIST: Final = "adapters.mcp.listing:listed"
_PAGE: Final = "adapters.mcp.listing:_page"
_INVOKE: Final = "kernel.gates:Kernel.invoke"
_MISS: Final = "outcome: Outcome = Hidden(call.name)"
_SEAL: Final = "kernel.seal:Seal"
_LINE: Final = "adapters.mcp.exchange:Exchange"
_LISTEN: Final = "adapters.mcp.listen:listen"
_TOOLS: Final = "request.server.kernel.catalog.tools"
_ENTRIES: Final = "request.server.kernel.catalog.entries"
_URIS: Final = f"[each.place.uri for each in {_ENTRIES} if each.place]"
_CONTENT: Final = "hidden content is absent, walked"
_JUDGED: Final = "content is judged, walked"
_SILENT: Final = "hidden changes are silent, walked"
_STATE: Final = "a round is its caller's"
_CURSOR: Final = "pages are a list"
_SEALED: Final = "a seal opens what it sealed"
_ASKED: Final = "an answer is its client's"
_SAID: Final = "a handler speaks to its client"
_HEARD: Final = "a stream ends with its right"
_ONCE: Final = "an answer serves one question"
_LEFT: Final = "who has left is not waited for"
_OPEN: Final = "open streams are counted"
_SHORT: Final = "what comes back is short"
_OWNED: Final = "a task is its owner's"

_OF_LISTS: Final = (
    mutant(
        "M11",
        "a list has a total of everything",
        (_PAGE, "members, more, request", f"members, more + b',\"total\":%d' % len({_ENTRIES}), request"),
        first=_CONTENT,
    ),
    mutant(
        "M12",
        "pages are cut before what is hidden is left out",
        (
            _LIST,
            "list(members), cursor)",
            'sorted({*members, *server.kernel.catalog.tools}) if kind == "tools" else list(members), cursor)',
        ),
        (_LIST, "for name in page.names)", "for name in page.names if name in members)"),
        first=_CONTENT,
    ),
    mutant(
        "M13",
        "a cursor tells its place in the list of everything",
        (
            _LIST,
            "to_json(page.cursor)",
            'to_json(page.cursor + "." * sum(name < page.names[-1] for name in server.kernel.catalog.tools))',
        ),
        first=_CONTENT,
    ),
    mutant(
        "M14",
        "a list has an ETag of the full catalog",
        (
            _LIST,
            'return result(request.id, _page(kind, server.listing.whole(table, kind), b"", request))',
            'reply = result(request.id, _page(kind, server.listing.whole(table, kind), b"", request))\n'
            "        tag = str(len(server.kernel.catalog.entries))\n"
            '        return Reply(reply.status, reply.body, (("etag", tag),))',
        ),
        first=_CONTENT,
    ),
    mutant(
        "M34",
        "the cache scope depends on filtering",
        (
            "adapters.mcp.endpoint:Request.cached",
            "return CACHE + ",
            "seen = self.view().table.tools\n"
            "        whole = len(seen) == len(self.server.kernel.catalog.tools)\n"
            '        return (CACHE.replace(b"private", b"public") if whole else CACHE) + ',
        ),
    ),
    mutant(
        "M39",
        "how long a list may be kept depends on what is hidden",
        (
            "adapters.mcp.endpoint:Request.cached",
            "return CACHE + ",
            'return CACHE.replace(b":0,", b":%d," % len(self.server.kernel.catalog.entries)) + ',
        ),
    ),
    mutant(
        "M35",
        "the order of a list depends on what is hidden",
        (
            "kernel.view:Viewer._build",
            "seen = [entry for entry in self._catalog.entries if entry.audience in audiences]",
            "size = len(self._catalog.entries)\n"
            "        seen = [entry for entry in self._catalog.entries if entry.audience in audiences]\n"
            "        seen.sort(key=lambda entry: sum(entry.name.encode()) % size)",
        ),
        ("adapters.mcp.describe:Listing._members", "return dict(sorted(members.items()))", "return members"),
    ),
    mutant(
        "M17",
        "instructions see all tools",
        (
            "adapters.mcp.introduce:_instructions",
            "text = text(request.view())",
            "view = request.view()\n"
            "            names = view.table.__dataclass_fields__\n"
            "            held = {each: getattr(view.table, each) for each in names}\n"
            f"            held['tools'] = {{each.name: each for each in {_ENTRIES} if each.exposed}}\n"
            "            text = text(type(view)(view.caller, type(view.table)(**held), view.judge))",
        ),
    ),
    mutant(
        "M40",
        "a capability is there for hidden tools only",
        (
            "adapters.mcp.introduce:initialize",
            '"capabilities": CAPABILITIES,',
            f'"capabilities": CAPABILITIES if len(request.view().table.tools) == len({_TOOLS}) '
            'else {**CAPABILITIES, "experimental": {}},',
        ),
    ),
    mutant(
        "cursor-of-anybody",
        "a cursor opens for whoever sends it",
        ("adapters.mcp.paging:_bound", "owner_key('', who)", "''"),
        first=_CURSOR,
    ),
    mutant(
        "cursor-of-any-list",
        "a cursor of one list opens another",
        ("adapters.mcp.paging:_bound", " {kind}", ""),
        first=_CURSOR,
    ),
    mutant(
        "page-skips",
        "a page begins one name too late",
        ("adapters.mcp.paging:Pages.page", "start = sum(", "start = 1 + sum("),
        first=_CURSOR,
    ),
)

_OF_NAMES: Final = (
    mutant(
        "M23",
        "an unknown name suggests near ones, of all tools",
        (
            _CALL,
            _REPLY,
            f'near = __import__("difflib").get_close_matches(asked.name, sorted({_TOOLS}), 1)\n    '
            + _REPLY.replace("asked.name", 'asked.name + " " + ", ".join(near)'),
        ),
    ),
    mutant(
        "M26",
        "mirrored headers are compared before visibility",
        (
            _CALL,
            "view = request.view()  # 8",
            f"known = [each for each in {_ENTRIES} if each.exposed and each.name == name]\n"
            "    early = line.unfit(known[0], arguments) if known else None\n"
            "    if early is not None and not early.needs:\n"
            "        return answer(request, name, known[0], early)\n"
            "    view = request.view()",
        ),
        first=_CONTENT,
    ),
    mutant(
        "M45",
        "what a request lacks for a tool is told by the tool's name alone",
        (
            _INVOKE,
            _MISS,
            "known = [each for each in self.catalog.entries if each.name == call.name]\n"
            "            early = line.unfit(known[0], call.arguments) if known and line else None\n"
            "            outcome: Outcome = early or Hidden(call.name)",
        ),
        first=_CONTENT,
    ),
    mutant(
        "M49",
        "a path with a slash behind is another place, if it is one",
        (
            "adapters.http.invoke:_served",
            "if not asked.inside:",
            'if asked.path.endswith("/") and asked.path[:-1] in server.kernel.catalog.paths:\n'
            '        return Reply(308, headers=(("location", head.path[:-1]),))\n'
            "    if not asked.inside:",
        ),
    ),
    mutant(
        "notified",
        "the notification form tells hidden from absent",
        (
            "adapters.mcp.server:_taken",
            "return Reply(202)",
            "named = None if isinstance(message, Response) else message.params.get('name')\n"
            "    return Reply(200 if named in server.kernel.catalog.tools else 202)",
        ),
    ),
    mutant(
        "needs-ignored",
        "a tool runs for a client that lacks what it needs",
        (
            f"{_LINE}.unfit",
            "for each in entry.needs if not self.can(each)",
            "for each in () if not self.can(each)",
        ),
        first="a request fits its tool",
    ),
    mutant(
        "headers-ignored",
        "headers may say what the arguments do not",
        (f"{_LINE}.unfit", "if cause is not None:", "if False:"),
        first="a request fits its tool",
    ),
)

_OF_CONTENT: Final = (
    mutant(
        "M25",
        "an argument of a hidden prompt is completed",
        (
            "adapters.mcp.completion:complete",
            "_found(view, kind, name), name",
            "_found(view, kind, name) or next((each for each in "
            f'{_ENTRIES} if each.kind == "prompt" and each.shown == name), None), name',
        ),
        first=_CONTENT,
    ),
    mutant(
        "M29",
        "the refusal of a prompt counts all prompts",
        (
            "adapters.mcp.content:no_prompt",
            "{_HINTS['prompt']}",
            f"{{sum(each.kind == 'prompt' for each in {_ENTRIES})}} {{_HINTS['prompt']}}",
        ),
        first=_CONTENT,
    ),
    mutant(
        "M47",
        "a hidden resource has the code of an older revision",
        (
            "adapters.mcp.content:_no_resource",
            "INVALID_PARAMS if request.modern else",
            f"INVALID_PARAMS if request.modern and uri not in {_URIS} else",
        ),
        first=_CONTENT,
    ),
    mutant(
        "resource-fallback",
        "a URI that misses is looked up in the catalog",
        (
            "kernel.gates:Kernel.read",
            "found = view.resource(uri)",
            "found = view.resource(uri) or next(((each, {}) for each in self.catalog.entries "
            "if each.place and each.place.uri == uri), None)",
        ),
        first=_CONTENT,
    ),
    mutant(
        "template-fallback",
        "a URI that misses is matched with hidden templates, which refuse it by policy",
        (
            "kernel.gates:Kernel.read",
            "outcome: Outcome = Hidden(uri)",
            "known = [each for each in self.catalog.entries if each.place and each.place.template "
            "and each.place.template.match(uri)]\n"
            '            outcome: Outcome = failed("X_FORBIDDEN") if known else Hidden(uri)',
        ),
        first=_CONTENT,
    ),
    mutant(
        "prompt-fallback",
        "a prompt that misses asks for its scope",
        (
            "kernel.gates:Kernel.render",
            "outcome: Outcome = Hidden(name)",
            "known = [each for each in self.catalog.entries if each.name == 'prompts/' + name]\n"
            "            outcome: Outcome = (unscoped(view, known[0]) if known else None) or Hidden(name)",
        ),
        first=_CONTENT,
    ),
    mutant(
        "resource-second-look",
        "a URI that misses is looked up once more, in everything",
        (
            "kernel.gates:Kernel.read",
            "outcome: Outcome = Hidden(uri)",
            "known = [each for each in self.catalog.entries if each.place and each.place.uri == uri]\n"
            "            known and hash(known[0])\n"
            "            outcome: Outcome = Hidden(uri)",
        ),
        first="one trace",
    ),
    mutant(
        "uri-folded",
        "a URI is found whatever slash stands behind it",
        (
            "kernel.view:View.resource",
            "self.table.resources.get(uri)",
            'self.table.resources.get(uri.rstrip("/"))',
        ),
        first=_JUDGED,
    ),
    mutant(
        "prompt-folded",
        "a prompt is found whatever its case",
        (
            "kernel.view:View.prompt",
            "self.table.prompts.get(name)",
            "{each.lower(): held for each, held in self.table.prompts.items()}.get(name.lower())",
        ),
        first=_JUDGED,
    ),
    mutant(
        "content-unscoped",
        "a completion asks for no scope",
        ("kernel.gates:_suggest", "if refused is not None:", "if False:"),
        first=_JUDGED,
    ),
    mutant(
        "content-unjudged",
        "a completion asks no policy",
        ("kernel.gates:_suggest", "if not decision.allow:", "if False:"),
        first=_JUDGED,
    ),
    mutant(
        "content-unaudited",
        "a hidden prompt is not audited",
        (
            "kernel.gates:Kernel.render",
            "yield Audit(",
            "if not isinstance(outcome, Hidden):\n            yield Audit(",
        ),
        first=_JUDGED,
    ),
)

_OF_STREAMS: Final = (
    mutant(
        "M24",
        "every change is told to everybody as a change of their lists",
        ("adapters.mcp.listen:_differing", "if before[name] != after[name]:", "if before is not after:"),
        first=_SILENT,
    ),
    mutant(
        "updates-to-all",
        "an update is told to who listens for it, seen or not",
        (_LISTEN, " and (yield from request.server.kernel.readable(view, uri))", ""),
        first=_SILENT,
    ),
    mutant(
        "updates-unread",
        "an update is told to who sees what it may not read",
        (
            "kernel.gates:Kernel.readable",
            "found is not None and (yield from _permitted(view, found[0], Asked(found[1])))",
            "bool((yield from ()), ) or found is not None",
        ),
        first=_HEARD,
    ),
    mutant(
        "acknowledges-declared",
        "a subscription to what is nowhere declared is acknowledged without it",
        (
            _LISTEN,
            "wanted.told(known)}",
            '{**wanted.told(known), "resourceSubscriptions": [uri for uri in wanted.uris if any('
            f"each.place and each.place.uri == uri for each in {_ENTRIES})]}}}}",
        ),
        first=_SILENT,
    ),
    mutant(
        "listens-forever",
        "a stream does not ask again whose token it is",
        ("adapters.mcp.listen:_still", "if token is None:", "if True:"),
        first=_HEARD,
    ),
    mutant(
        "listens-as-somebody",
        "a stream goes on for whoever the token is now",
        (
            "adapters.mcp.listen:_still",
            'owner_key("", who) != owner_key("", request.who)',
            "False",
        ),
        first=_HEARD,
    ),
    mutant(
        "listens-as-it-was",
        "a stream sees what its caller saw when it began",
        (_LISTEN, "view = request.server.kernel.view_for(who)", "view = request.view()"),
        first=_HEARD,
    ),
    mutant(
        "event-splits",
        "line ends of other alphabets stand in an event",
        ("adapters.wire:one_line", "in _LINE_ENDS:", "in ():"),
        first=_SAID,
    ),
    mutant(
        "progress-invented",
        "progress is told to who sent no token",
        (
            f"{_LINE}.progress",
            "if not self._streams or isinstance(token, bool) or not isinstance(token, (str, int)):",
            "token = token if isinstance(token, (str, int)) else 1\n        if not self._streams:",
        ),
        first=_SAID,
    ),
    mutant(
        "progress-falsy",
        "a token of nought is none",
        (f"{_LINE}.progress", "if not self._streams or", "if not token or not self._streams or"),
        first=_SAID,
    ),
    mutant(
        "progress-stays",
        "progress is told twice",
        (f"{_LINE}.progress", "not self._done < said.done", "not self._done <= said.done"),
        first=_SAID,
    ),
    mutant(
        "logs-unasked",
        "a client that named no level is sent log messages",
        (f"{_LINE}.log", "if self._modern else past", "or past"),
        first=_SAID,
    ),
    mutant(
        "streams-unasked",
        "a client that takes no stream is sent one",
        (f"{_LINE}.progress", "if not self._streams or ", "if "),
        first=_SAID,
    ),
)

_OF_ROUNDS: Final = (
    mutant(
        "seal-unkeyed",
        "what anybody made is taken as sealed",
        (f"{_SEAL}.unseal", "return payload if genuine else None", "return payload"),
        first=_SEALED,
    ),
    mutant(
        "seal-begins",
        "the beginning of a tag is enough",
        (f"{_SEAL}.unseal", "compare_digest(tag, sealed[:TAG_BYTES])", "compare_digest(tag[:8], sealed[:8])"),
        first=_SEALED,
    ),
    mutant(
        "seal-for-anything",
        "every purpose has the same key",
        ("kernel.seal:_tag", "purpose.encode()", 'b""'),
        first=_SEALED,
    ),
    mutant(
        "seal-unbound",
        "what is sealed is bound to nothing",
        ("kernel.seal:_tag", "hashlib.sha256(bound).digest() + payload", "payload"),
        first=_SEALED,
    ),
    mutant(
        "seal-runs-on",
        "what is bound runs into what is sealed",
        ("kernel.seal:_tag", "hashlib.sha256(bound).digest() + payload", "bound + payload"),
        first=_SEALED,
    ),
    mutant(
        "seal-spelled",
        "a second spelling of a sealed text is taken",
        (
            "kernel.seal:_decoded",
            'return raw if base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == text else None',
            "return raw",
        ),
        first=_SEALED,
    ),
    mutant(
        "seal-of-any-server",
        "what one server sealed opens another's round",
        (f"{_SEAL}.of", "return Seal(key, tuple(earlier))", "return self"),
        first=_STATE,
    ),
    mutant(
        "state-of-anybody",
        "the state of a round opens for whoever sends it",
        (f"{_LINE}._bound", "owner_key('', self._who)", "''"),
        first=_STATE,
    ),
    mutant(
        "state-of-any-tool",
        "the state of a round opens for another tool",
        (f"{_LINE}._bound", '[params.get("name"), params.get("uri"), ', "["),
        first=_STATE,
    ),
    mutant(
        "state-of-any-arguments",
        "the state of a round opens for other arguments",
        (f"{_LINE}._bound", ', params.get("arguments")]', "]"),
        first=_STATE,
    ),
    mutant(
        "state-of-any-method",
        "the state of a round opens for another method",
        (f"{_LINE}._bound", " {self._message.method}", ""),
        first=_STATE,
    ),
    mutant(
        "state-for-ever",
        "the state of a round opens for ever",
        (f"{_LINE}.reopen", ">= self._head.received", ">= 0"),
        first=_STATE,
    ),
    mutant(
        "state-ignored",
        "a state that is none is read past",
        (f"{_LINE}.reopen", "return False", "return True"),
        first=_STATE,
    ),
    mutant(
        "answer-of-anybody",
        "an answer is taken from whoever sends it",
        (
            "adapters.edge.client:Waiting.deliver",
            'asked == owner_key("", who) and',
            "True and",
        ),
        first=_ASKED,
    ),
    mutant(
        "owner-is-the-agent",
        "what an agent of one person left belongs to the same agent of another",
        ("kernel.model:owner_key", "in parties(principal)]", "in parties(principal)[:1]]"),
        first=_STATE,
    ),
    mutant(
        "answer-unchecked",
        "a form need not be filled",
        ("adapters.mcp.asking:_elicited", "or not form_of(ask.schema).filled(content)", ""),
        first=_ASKED,
    ),
    mutant(
        "asks-undeclared",
        "a client is asked what it did not declare",
        ("adapters.edge.client:StreamClient._round", "if lacking:", "if False:"),
        first=_ASKED,
    ),
    mutant(
        "answers-in-part",
        "some of the answers are enough",
        (
            "adapters.mcp.answers:_fitting",
            "return known if len(known) == len(asks) else None",
            "return known or None",
        ),
        first=_ASKED,
    ),
    mutant(
        "answers-serve-twice",
        "an answer serves every question of its key",
        ("adapters.mcp.answers:Answers.take", "self._fresh = {}", "pass"),
        first=_ONCE,
    ),
    mutant(
        "answers-remembered-serve-twice",
        "an answer of an earlier round serves every question of its key",
        ("adapters.mcp.answers:Answers.take", "del self._left[at]", "pass"),
        first=_ONCE,
    ),
    mutant(
        "answers-forgotten",
        "the next round does not find what this one was answered",
        (
            f"{_LINE}.suspend",
            "taken = [] if self._answers is None else self._answers.taken",
            "taken: list[Json] = []",
        ),
        first=_ONCE,
    ),
    mutant(
        "round-goes-on",
        "a round that ended asks another question",
        ("adapters.edge.client:StreamClient._round", "if self.ended is not None:", "if False:"),
        first=_ONCE,
    ),
    mutant(
        "bug-as-a-question",
        "a bug beside a question is taken for the question",
        (
            "adapters.edge.client:spoken",
            "if not all(isinstance(leaf, _SPOKEN) for leaf in leaves):",
            "if False:",
        ),
        first=_ONCE,
    ),
    mutant(
        "asks-who-left",
        "a question waits for a client that has left",
        ("adapters.edge.client:_unless", "if departure.done():", "if False:"),
        first=_LEFT,
    ),
)

_OF_BOUNDS: Final = (
    mutant(
        "streams-unbounded",
        "a caller opens as many streams as it likes",
        ("adapters.edge.streams:Streams.take", "return False", "pass"),
        first=_OPEN,
    ),
    mutant(
        "streams-of-everybody",
        "the streams of all callers are one allowance",
        (
            "adapters.edge.streams:Streams.take",
            "self._open.get(owner, 0) >= self._limits.per_principal",
            "self._all >= self._limits.per_principal",
        ),
        first=_OPEN,
    ),
    mutant(
        "streams-kept",
        "a stream that ended still counts",
        ("adapters.edge.run:Edge.flush", "self.running.streams.give(self.listens)", "pass"),
        first=_OPEN,
    ),
    mutant(
        "questions-uncounted",
        "a call that waits for its client is no stream",
        (
            "adapters.edge.client:Waiting.open",
            "if not self._streams.take(owner):",
            "if self._streams is None:",
        ),
        ("adapters.edge.client:Waiting._forget", "self._streams.give(owner)", "pass"),
        first=_OPEN,
    ),
    mutant(
        "echoes-everything",
        "ids and tokens of any length come back",
        ("adapters.mcp.envelope:overlong", "len(held) > MAX_ECHOED_CHARS", "False"),
        first=_SHORT,
    ),
    mutant(
        "echoes-addresses",
        "an address of any length comes back",
        (
            "adapters.mcp.content:_no_resource",
            'uri if len(uri) <= MAX_ECHOED_CHARS else uri[:MAX_ECHOED_CHARS] + "..."',
            "uri",
        ),
        first=_SHORT,
    ),
)

_OF_TASKS: Final = (
    mutant(
        "task-of-anybody",
        "a task opens to whoever knows its id",
        ("adapters.edge.task_store:TaskBook.find", "held.owner == owner", "True"),
        first=_OWNED,
    ),
    mutant(
        "task-of-the-hidden",
        "a task opens though its tool is hidden by now",
        ("kernel.held:held", "kernel.still(view, found.tool) if isinstance(found, Task) else found", "None"),
        first=_OWNED,
    ),
    mutant(
        "task-told-to-anybody",
        "a listener is told of tasks that are refused to it",
        ("adapters.mcp.tasks:followed", "if task is not None and refusing is None:", "if task is not None:"),
        first=_OWNED,
    ),
)

WIRE_MUTANTS: Final = (
    *_OF_LISTS,
    *_OF_NAMES,
    *_OF_CONTENT,
    *_OF_STREAMS,
    *_OF_ROUNDS,
    *_OF_BOUNDS,
    *_OF_TASKS,
)
