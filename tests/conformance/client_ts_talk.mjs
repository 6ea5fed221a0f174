// Calls tools that talk, with `@modelcontextprotocol/client`: reads a plan from stdin, writes what was heard.
import { text } from "node:stream/consumers";

import { Client, ProtocolError, StreamableHTTPClientTransport } from "@modelcontextprotocol/client";

const MODES = { legacy: "legacy", modern: { pin: "2026-07-28" } };
const LEVEL = { "io.modelcontextprotocol/logLevel": "info" };

async function connect({ url, token, era, asks }, heard) {
  const capabilities = asks ? { elicitation: {} } : {};
  const client = new Client(
    { name: "test", version: "1" },
    { capabilities, versionNegotiation: { mode: MODES[era] } },
  );
  client.setNotificationHandler("notifications/message", ({ params: { level, logger, data } }) => {
    heard.logs.push([level, logger, data]);
  });
  if (asks)
    client.setRequestHandler("elicitation/create", ({ params: { message } }) => {
      heard.asked.push(message);
      return { action: "accept", content: { stars: 5 } };
    });
  const requestInit = { headers: { Authorization: `Bearer ${token}` } };
  await client.connect(new StreamableHTTPClientTransport(new URL(url), { requestInit }));
  return client;
}

async function called(client, name, heard) {
  const onprogress = ({ progress, total, message }) => heard.progress.push([progress, total, message ?? null]);
  try {
    const { isError, content } = await client.callTool({ name, arguments: {}, _meta: LEVEL }, { onprogress });
    return { isError: isError ?? false, text: content[0].text };
  } catch (error) {
    if (error instanceof ProtocolError) return { code: error.code, message: error.message, data: error.data ?? null };
    return { failure: error.constructor.name, message: error.message };
  }
}

const plan = JSON.parse(await text(process.stdin));
const heard = { progress: [], logs: [], asked: [] };
const client = await connect(plan, heard);
const answers = [];
for (const name of plan.calls) answers.push(await called(client, name, heard));
await client.close();
console.log(JSON.stringify({ ...heard, answers }));
