// Walks a plan with `@ai-sdk/mcp`; `run` executes a tool of the listing, as the AI SDK does for a model.
import { createMCPClient } from "@ai-sdk/mcp";

import { called, run, take } from "./client_walk.mjs";

function connect({ url, era }, token) {
  const headers = { Authorization: `Bearer ${token}` };
  const transport = { type: "http", url, headers };
  return createMCPClient({ transport, protocolVersionDiscovery: era !== "legacy" });
}

async function step(client, each) {
  const [what, name, args] = each;
  if (what !== "run") return take(client, each);
  const tools = await client.tools();
  return { ran: called(await tools[name].execute(args, { toolCallId: "1", messages: [] })).text };
}

// The package exports no class of its errors; those of the protocol carry a code.
class RpcError {
  static [Symbol.hasInstance](error) {
    return typeof error.code === "number";
  }
}

await run(connect, RpcError, step);
