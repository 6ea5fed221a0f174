// Walks a plan with the OAuth client of `@modelcontextprotocol/sdk`; a session's token names it.
import { UnauthorizedError } from "@modelcontextprotocol/sdk/client/auth.js";
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";
import { McpError } from "@modelcontextprotocol/sdk/types.js";

import { authorized, Provider } from "./client_oauth.mjs";
import { run, take } from "./client_walk.mjs";

async function connect({ url }, token) {
  const authProvider = new Provider(token);
  const client = new Client({ name: "test", version: "1" });
  const session = { client, close: () => client.close() };
  const open = () => {
    session.transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
    return client.connect(session.transport);
  };
  session.finish = () => session.transport.finishAuth(authProvider.callback.get("code"));
  await authorized(UnauthorizedError, open, session.finish);
  return session;
}

const step = ({ client, finish }, each) => authorized(UnauthorizedError, () => take(client, each), finish);

await run(connect, McpError, step);
