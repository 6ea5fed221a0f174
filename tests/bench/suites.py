"""The measurements of the bench: what runs together, and which ratios its medians make."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial

import uvloop

from . import db_query, footprint, inprocess, limiter, load, policy_sets, proof, queries, report, wire
from .blocks import Lane, Plan, Sample, Series, interleave
from .report import Row, at_least, at_most
from .server import Server, pin_driver, serve

TOOLS = 100
RECORDED = ("nonsuch-otel", "fastmcp-otel")


@dataclass(frozen=True, slots=True)
class Settings:
    """How much to measure."""

    names: list[str]
    rounds: int
    seconds: float
    quick: bool

    @property
    def list_sizes(self) -> tuple[int, ...]:
        """Peers take minutes to build 10,000 tools: a quick run leaves that size to nonsuch's own suite."""
        return inprocess.SIZES[:-1] if self.quick else inprocess.SIZES


@dataclass(slots=True)
class Result:
    """What one suite found."""

    title: str
    rows: list[Row]
    table: str
    series: dict[str, Series]
    extra: dict[str, float] = field(default_factory=dict[str, float])


def loopback(settings: Settings) -> Iterator[Result]:
    """`tools/call` under uvicorn on 127.0.0.1: every subject, both wires, concurrency 1 and 16."""
    plan = Plan(settings.rounds, settings.seconds, warm_up=64)
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(name, TOOLS)) for name in settings.names]
        pin_driver()
        for server in servers:
            uvloop.run(proof.prove(server.name, partial(_passes, server)))
        lanes = {
            f"{server.name} {one} c={concurrency}": _lane(server, one, concurrency)
            for one in wire.WIRES
            for concurrency in (16, 1)
            for server in servers
        }
        series = interleave(lanes, plan)
    rows = _loopback_rows(series) if "nonsuch" in settings.names else []
    yield Result("tools/call over loopback", rows, report.loopback(series), series)


def calls(settings: Settings) -> Iterator[Result]:
    """`tools/call` in process: every subject, both wires."""
    series, counts = inprocess.calls(settings.names, Plan(settings.rounds, settings.seconds))
    rows: list[Row] = []
    if "nonsuch" in settings.names:
        for one in wire.WIRES:
            aims = {"fastmcp": at_least(8 if one == "legacy" else 6)}
            rows += [
                Row(f"call in process, {one}: {name} / nonsuch, CPU", cost, None, aims.get(name))
                for name in settings.names
                if name != "nonsuch"
                for cost in [series[f"{name} {one}"].cpu / series[f"nonsuch {one}"].cpu]
            ]
        rows.append(Row("Python and C calls of one call", counts["nonsuch"], None, at_most(200), ""))
    yield Result("tools/call in process", rows, report.costs(series), series, counts)


def recorded(settings: Settings) -> Iterator[Result]:
    """`tools/call` under uvicorn with OpenTelemetry recording on both sides, both wires, concurrency 16."""
    with ExitStack() as stack:
        servers = [stack.enter_context(serve(name, TOOLS)) for name in RECORDED]
        pin_driver()
        for server in servers:
            uvloop.run(proof.prove(server.name, partial(_passes, server)))
        lanes = {f"{each.name} {one} c=16": _lane(each, one, 16) for one in wire.WIRES for each in servers}
        series = interleave(lanes, Plan(settings.rounds, settings.seconds, warm_up=64))
    rows: list[Row] = []
    for one in wire.WIRES:
        mine, theirs = (series[f"{name} {one} c=16"] for name in RECORDED)
        what = f"call c=16 with OpenTelemetry, {one}"
        rows.append(Row(f"{what}: nonsuch / fastmcp, req/s", mine.rate / theirs.rate, None, at_least(4)))
        rows.append(Row(f"{what}: fastmcp / nonsuch, CPU", theirs.cpu / mine.cpu))
    yield Result("tools/call over loopback, recorded", rows, report.loopback(series), series)


def gates(settings: Settings) -> Iterator[Result]:
    """Decisions and calls of nonsuch as the catalog grows."""
    if "nonsuch" not in settings.names:
        return
    series, memory = inprocess.growth(inprocess.SIZES, Plan(settings.rounds, settings.seconds))
    least, most = inprocess.SIZES[0], inprocess.SIZES[-1]
    hot, uniform, callers = (f"gates {pattern}" for pattern in ("hot", "uniform", "callers"))
    each_tool = f"three gates warm, every tool alike: {most:,} / {least}"
    many = series[f"{callers} 100"].cpu / series[f"{hot} 100"].cpu
    rows = [
        Row(
            f"three gates warm, hot tools: {most:,} / {least}",
            _grown(series, hot, most, least),
            at_most(2),
        ),
        Row(each_tool, _grown(series, uniform, most, least)),
        Row("three gates warm, hot tools: 256 callers / 1", many),
    ]
    for one in wire.WIRES:
        grown = _grown(series, f"call {one}", 1_000, least)
        rows.append(Row(f"call in process, {one}: 1,000 tools / {least}", grown, None, at_most(1.15)))
    each = (memory[str(most)] - memory[str(least)]) / (most - least) / 1024
    rows.append(Row("resident memory per tool", each, None, at_most(25), "KB"))
    yield Result("growth", rows, report.costs(series), series, memory)


def lists(settings: Settings) -> Iterator[Result]:
    """`tools/list` at every size: repeat callers, new callers, callers with roles of their own."""
    for size in settings.list_sizes:
        yield _list(settings, size)


def policies(settings: Settings) -> Iterator[Result]:
    """Decisions as policies grow, a slice against its whole set, and what a new caller may see."""
    if "nonsuch" not in settings.names:
        return
    plan = Plan(settings.rounds, settings.seconds)
    series = policy_sets.decisions(plan) | policy_sets.visibility(plan)
    least, most = policy_sets.SIZES[0], policy_sets.SIZES[-1]
    whole, new = f"{policy_sets.WHOLE:,} policies, ", series["view of 1,000 tools, new caller"].cpu
    classes = policy_sets.CLASSES * series["one decision of visibility"].cpu
    rows = [
        Row(
            f"decision, {most:,} policies / {least}",
            series[f"decision at {most:,} policies"].cpu / series[f"decision at {least:,} policies"].cpu,
            at_most(2),
        ),
        Row(
            f"{whole}whole set / slice",
            series[f"{whole}whole set"].cpu / series[f"{whole}slice"].cpu,
            at_least(20),
        ),
        Row(
            f"view of 1,000 tools, new caller / one decision x {policy_sets.CLASSES} audience classes",
            new / classes,
            at_most(5),
        ),
    ]
    yield Result("policies", rows, report.costs(series), series)


def guarded(settings: Settings) -> Iterator[Result]:
    """The guard of `db.query` in process: the parser alone, the facts, the verdict."""
    series = queries.measure(Plan(settings.rounds, settings.seconds))
    whole, alone = series["verdict, a report"], series["parser alone, a report"]
    rows = [
        Row("guard of a report, p50", whole.p50 * 1e3, None, at_most(2), "ms"),
        Row("guard of a report / its parser alone, CPU", whole.cpu / alone.cpu),
    ]
    yield Result("guard of queries, in process", rows, queries.table(series), series)


def asked(settings: Settings) -> Iterator[Result]:
    """`db.query` of ten rows over a unix socket: a bare query of a pool, the layers, the guard too."""
    series = db_query.measure(Plan(settings.rounds, settings.seconds, warm_up=64))
    bare = series[db_query.BARE].p50
    rows = [
        Row(f"{lane} / bare query of a pool, p50", series[lane].p50 / bare, at_most(3), at_most(2.6))
        for lane in (db_query.LAYERS, db_query.LIVE, db_query.WHOLE)
    ]
    yield Result("db.query of 10 rows, unix socket", rows, queries.table(series), series)


def limited(settings: Settings) -> Iterator[Result]:
    """One request counted in PostgreSQL, beside `select 1`; one key of many callers, beside many keys."""
    plan = Plan(settings.rounds, settings.seconds, cap=20_000, warm_up=64)
    for loop, series in limiter.measure(plan):
        rows = list(limiter.rows(series, loop))
        yield Result(f"rate limits in PostgreSQL, {loop}", rows, queries.table(series), series)


def sizes(settings: Settings) -> Iterator[Result]:
    """Bytes of a message and of a served process, at 1,000 tools."""
    names = [name for name in settings.names if name in ("nonsuch", "fastmcp", "sdk")]
    prints = footprint.measure(names)
    rows: list[Row] = []
    if "nonsuch" in prints:
        mine = prints["nonsuch"]
        for name, each in prints.items():
            if each is mine:
                continue
            what = f"nonsuch / {name}"
            rows.append(
                Row(f"resident memory at 1,000 tools: {what}", mine.resident / each.resident, at_most(1))
            )
            rows += [
                Row(f"bytes of a {kind}: {what}", mine.sizes[kind] / each.sizes[kind]) for kind in mine.sizes
            ]
    yield Result("bytes at 1,000 tools", rows, footprint.table(prints), {})


Suite = Callable[[Settings], Iterator[Result]]
SUITES: dict[str, Suite] = {
    "loopback": loopback,
    "calls": calls,
    "recorded": recorded,
    "gates": gates,
    "lists": lists,
    "sizes": sizes,
    "policies": policies,
    "queries": guarded,
    "db_query": asked,
    "limits": limited,
}


def _list(settings: Settings, size: int) -> Result:
    plan = Plan(settings.rounds, settings.seconds, warm_up=2 if size < 10_000 else 1)
    series = inprocess.lists(settings.names, size, plan)
    rows: list[Row] = []
    if "nonsuch" in settings.names:
        mine = series["nonsuch warm"].cpu
        at_1000 = size == 1_000
        if at_1000:
            rows += [
                Row(
                    "list of 1,000, repeat caller / json.dumps", mine / series["encode json"].cpu, at_most(3)
                ),
                Row(
                    "list of 1,000, repeat caller / pydantic_core.to_json",
                    mine / series["encode pydantic"].cpu,
                    at_most(3),
                ),
            ]
        if "fastmcp" in settings.names:
            repeat, new = series["fastmcp warm"].cpu, series["fastmcp fresh"].cpu
            rows += [
                Row(
                    f"list of {size:,}, repeat caller: fastmcp / nonsuch",
                    repeat / mine,
                    None,
                    at_least(60) if at_1000 else None,
                ),
                Row(
                    f"list of {size:,}, new caller: fastmcp / nonsuch",
                    new / series["nonsuch fresh"].cpu,
                    None,
                    at_least(6) if at_1000 else None,
                ),
                Row(
                    f"list of {size:,}, new set of roles: fastmcp / nonsuch",
                    new / series["nonsuch mixed"].cpu,
                ),
            ]
    return Result(f"tools/list of {size:,}", rows, report.costs(series), series)


def _loopback_rows(series: dict[str, Series]) -> list[Row]:
    rows: list[Row] = []
    for one in wire.WIRES:
        for concurrency in (16, 1):
            rows += _rates(series, one, concurrency)
        rows += _cpu(series, one)
    return rows


def _rates(series: dict[str, Series], one: wire.Wire, concurrency: int) -> list[Row]:
    bars = (
        {"fastmcp": at_least(6), "sdk": at_least(2.5), "starlette": at_least(0.25)}
        if concurrency == 16
        else {}
    )
    aims = {"fastmcp": at_least(8 if one == "legacy" else 6)} if concurrency == 16 else {}
    mine = series[f"nonsuch {one} c={concurrency}"].rate
    return [
        Row(
            f"call c={concurrency}, {one}: nonsuch / {name}, req/s",
            mine / series[lane].rate,
            bars.get(name),
            aims.get(name),
        )
        for name in ("fastmcp", "sdk", "sdk-default", "starlette", "raw")
        if (lane := f"{name} {one} c={concurrency}") in series
    ]


def _cpu(series: dict[str, Series], one: wire.Wire) -> list[Row]:
    """What the throughput would be on an undisturbed core, and the distance from the floor."""
    mine = series[f"nonsuch {one} c=16"].cpu
    aims = {"fastmcp": at_least(7)}
    rows = [
        Row(f"call c=16, {one}: {name} / nonsuch, CPU", series[lane].cpu / mine, None, aims.get(name))
        for name in ("fastmcp", "sdk", "sdk-default", "starlette")
        if (lane := f"{name} {one} c=16") in series
    ]
    if floor := series.get(f"raw {one} c=16"):
        rows.append(Row(f"call c=16, {one}: nonsuch / raw, CPU", mine / floor.cpu, None, at_most(5)))
        if plain := series.get(f"nonsuch-plain {one} c=16"):
            what = f"call c=16, {one}: nonsuch without argument policy / raw, CPU"
            rows.append(Row(what, plain.cpu / floor.cpu, None, at_most(2.5)))
    return rows + _like_for_like(series, one)


def _like_for_like(series: dict[str, Series], one: wire.Wire) -> list[Row]:
    """What a peer's per-tool auth can express: roles, scopes and a grant, and no policy about an argument."""
    plain = series.get(f"nonsuch-plain {one} c=16")
    if plain is None:
        return []
    return [
        Row(f"call c=16, {one}: {name} / nonsuch without argument policy, CPU", series[lane].cpu / plain.cpu)
        for name in ("fastmcp", "sdk", "sdk-default", "starlette")
        if (lane := f"{name} {one} c=16") in series
    ]


def _grown(series: dict[str, Series], lane: str, most: int, least: int) -> float:
    return series[f"{lane} {most}"].cpu / series[f"{lane} {least}"].cpu


async def _passes(server: Server, request: wire.Request) -> bool:
    return await load.passes(server.port, load.Shot(request.http(), request.marker))


def _lane(server: Server, one: wire.Wire, concurrency: int) -> Lane:
    shots = [load.Shot(request.http(), request.marker) for request in wire.calls(one, TOOLS)]

    def run(operations: int) -> Sample:
        before = server.cpu()
        block = uvloop.run(load.fire(server.port, shots, max(operations, concurrency), concurrency))
        used = server.cpu() - before
        share = block.driver_cpu / block.seconds
        return Sample(block.requests, block.seconds, used, block.p50, block.p99, share)

    return run
