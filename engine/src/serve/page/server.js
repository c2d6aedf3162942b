// The server: what it serves, and answers as they are written.

/** What is wrong with a request, in the server's words; `status` is 0 when there is no server. */
export class Refusal extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

/** The served model: its name, and whether it reads pictures. */
export async function model(key) {
  const listed = await (await ask("v1/models", key)).json();
  const { id, input_modalities } = listed.data[0];
  return { id, pictures: input_modalities.includes("image") };
}

/** The events of a streamed chat, as objects. Fails when the stream does, or breaks off. */
export async function* chat(body, key, signal) {
  const headers = { "Content-Type": "application/json" };
  const response = await ask("v1/chat/completions", key, { method: "POST", headers, body: JSON.stringify(body), signal });
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { done, value } = await reader.read();
      if (done) break;
      const lines = (rest + value).split("\n");
      rest = lines.pop();
      for (const line of lines) {
        if (!line.startsWith("data:")) continue;
        const data = line.slice("data:".length).trim();
        if (data === "[DONE]") return;
        const event = JSON.parse(data);
        if (event.error) throw new Refusal(200, event.error.message);
        yield event;
      }
    }
  } finally {
    // Whoever reads no further hangs up, which ends the answer on the server.
    reader.cancel().catch(() => {});
  }
  throw new Refusal(0, "The connection broke off before the answer was over.");
}

async function ask(path, key, options = {}) {
  const headers = { ...options.headers, ...(key && { Authorization: `Bearer ${key}` }) };
  let response;
  try {
    response = await fetch(path, { ...options, headers, cache: "no-store", credentials: "omit" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refusal(0, "The server cannot be reached.");
  }
  if (response.ok) return response;
  const text = await response.text();
  let message = text.slice(0, 500);
  try {
    message = JSON.parse(text).error.message;
  } catch {
    // Something between here and the server answered.
  }
  throw new Refusal(response.status, message || `The server answered ${response.status}.`);
}
