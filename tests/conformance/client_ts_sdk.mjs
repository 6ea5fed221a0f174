// Walks a plan with `@modelcontextprotocol/sdk`: reads it from stdin, writes what each step met to stdout.
// Knows no expectation.
import { text } from "node:stream/consumers";

import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpError as RpcError } from "@modelcontextprotocol/sdk/types.js";

async function connected({ url }, token) {
  const client = new Client({ name: "test", version: "1" });
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return client;
}

async function met(client, [what, name, args]) {
  try {
    if (what === "list") {
      const { tools } = await client.listTools();
      return { tools: tools.map((tool) => tool.name) };
    }
    const { isError, content, structuredContent } = await client.callTool({ name, arguments: args });
    return { isError: isError ?? false, text: content[0].text, structured: structuredContent ?? null };
  } catch (error) {
    if (error instanceof RpcError) return { code: error.code, message: error.message, data: error.data ?? null };
    return { failure: error.constructor.name, message: error.message, description: error.errorDescription ?? null };
  }
}

const plan = JSON.parse(await text(process.stdin));
const sessions = [];
for (const { token, steps } of plan.sessions) {
  const client = await connected(plan, token);
  const seen = [];
  for (const step of steps) seen.push(await met(client, step));
  sessions.push(seen);
  await client.close();
}
console.log(JSON.stringify(sessions));
