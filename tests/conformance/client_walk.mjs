// Walks a plan with a client: reads it from stdin, writes what each step met to stdout.
// Knows no expectation. One client object a session, connected by its program.
import { text } from "node:stream/consumers";

export async function take(client, [what, name, args]) {
  switch (what) {
    case "tools":
      return { tools: (await client.listTools()).tools.map((each) => each.name) };
    case "call":
      return called(await client.callTool({ name, arguments: args }));
    case "prompts":
      return { prompts: (await client.listPrompts()).prompts.map((each) => each.name) };
    case "prompt": {
      const { messages } = await client.getPrompt({ name, arguments: args });
      return { messages: messages.map((each) => [each.role, each.content.text]) };
    }
    case "resources":
      return { resources: (await client.listResources()).resources.map((each) => each.uri) };
    case "read":
      return { read: (await client.readResource({ uri: name })).contents[0].text };
    default:
      throw new Error(`no such step: ${what}`);
  }
}

export function called({ isError, content, structuredContent }) {
  return { isError: isError ?? false, text: content[0].text, structured: structuredContent ?? null };
}

// `RpcError` is the client's class for an error of the protocol; any other is told as a failure of the client's.
function refusal(error, RpcError) {
  if (error instanceof RpcError) return { code: error.code, message: error.message, data: error.data ?? null };
  return { failure: error.constructor.name, message: error.message, description: error.errorDescription ?? null };
}

async function met(take, client, step, RpcError) {
  try {
    return await take(client, step);
  } catch (error) {
    return refusal(error, RpcError);
  }
}

export async function run(connect, RpcError, step = take) {
  const plan = JSON.parse(await text(process.stdin));
  const sessions = [];
  for (const { token, steps } of plan.sessions) {
    const client = await connect(plan, token);
    const seen = [];
    for (const each of steps) seen.push(await met(step, client, each, RpcError));
    sessions.push(seen);
    await client.close();
  }
  console.log(JSON.stringify(sessions));
}
