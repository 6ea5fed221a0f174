// Walks a plan with `@modelcontextprotocol/client`.
import { Client, ProtocolError, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

import { run } from "./client_walk.mjs";

const MODES = { legacy: "legacy", modern: { pin: "2026-07-28" }, auto: "auto" };

async function connect({ url, era }, token) {
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: MODES[era] } });
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return client;
}

await run(connect, ProtocolError);
