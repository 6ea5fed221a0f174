// What the TypeScript OAuth clients share: a provider without a person, and what an app does when one is asked for.

// Keeps everything in memory; its browser follows the redirect at once.
export class Provider {
  redirectUrl = "http://127.0.0.1:1/callback";

  constructor(name) {
    const registered = { redirect_uris: [this.redirectUrl], token_endpoint_auth_method: "none" };
    this.clientMetadata = { client_name: name, ...registered };
  }

  clientInformation = () => this.client;
  saveClientInformation = (client) => void (this.client = client);
  tokens = () => this.held;
  saveTokens = (tokens) => void (this.held = tokens);
  codeVerifier = () => this.verifier;
  saveCodeVerifier = (verifier) => void (this.verifier = verifier);
  discoveryState = () => this.discovered;
  saveDiscoveryState = (discovered) => void (this.discovered = discovered);

  async redirectToAuthorization(url) {
    const answered = await fetch(url, { redirect: "manual" });
    const location = answered.headers.get("location");
    if (location === null) throw new Error(await answered.text());
    this.callback = new URL(location).searchParams;
  }
}

// An app is told to send its person away, and does what it did again once that person is back.
export async function authorized(error, action, finish) {
  try {
    return await action();
  } catch (thrown) {
    if (!(thrown instanceof error)) throw thrown;
    await finish();
    return action();
  }
}
