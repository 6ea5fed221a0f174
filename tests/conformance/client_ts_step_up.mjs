// Walks a plan with the OAuth client of `@modelcontextprotocol/client`; a session's token names it.
import {
  Client,
  ProtocolError,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";

import { authorized, Provider } from "./client_oauth.mjs";
import { run, take } from "./client_walk.mjs";

const MODES = { legacy: "legacy", modern: { pin: "2026-07-28" } };

async function connect({ url, era }, token) {
  const authProvider = new Provider(token);
  const client = new Client({ name: "test", version: "1" }, { versionNegotiation: { mode: MODES[era] } });
  const session = { client, close: () => client.close() };
  const open = () => {
    session.transport = new StreamableHTTPClientTransport(new URL(url), { authProvider });
    return client.connect(session.transport);
  };
  session.finish = () => session.transport.finishAuth(authProvider.callback);
  await authorized(UnauthorizedError, open, session.finish);
  return session;
}

const step = ({ client, finish }, each) => authorized(UnauthorizedError, () => take(client, each), finish);

await run(connect, ProtocolError, step);
