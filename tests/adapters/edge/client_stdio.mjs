// Talks over stdio with `@modelcontextprotocol/client`: the first argument is the era, the rest the server's
// command. Writes what it met to stdout. Knows no expectation.
import { Client, ProtocolError } from "@modelcontextprotocol/client";
import { StdioClientTransport } from "@modelcontextprotocol/client/stdio";

const MODES = { legacy: "legacy", modern: { pin: "2026-07-28" }, auto: "auto" };
const [era, cwd, command, ...args] = process.argv.slice(2);
const client = new Client(
  { name: "test", version: "1" },
  { versionNegotiation: { mode: MODES[era] }, capabilities: { elicitation: { form: {} } } },
);
client.setRequestHandler("elicitation/create", async () => ({ action: "accept", content: { name: "Ann" } }));
await client.connect(new StdioClientTransport({ command, args, cwd, stderr: "pipe" }));

async function met(name, args, options) {
  try {
    return (await client.callTool({ name, arguments: args }, options)).content[0].text;
  } catch (error) {
    return error instanceof ProtocolError ? error.code : String(error);
  }
}

const { tools } = await client.listTools();
const seen = {
  tools: tools.map((tool) => tool.name),
  hello: await met("hello", { name: "TypeScript" }),
  count: await met("count", { to: 3 }),
  noisy: await met("noisy", {}),
  ask: await met("ask", {}),
  gone: await met("gone", {}),
};
const aborted = new AbortController();
setTimeout(() => aborted.abort(), 100);
seen.aborted = (await met("wait", {}, { signal: aborted.signal })).length > 0;
seen.after = await met("hello", { name: "again" });
await client.close();
console.log(JSON.stringify(seen));
