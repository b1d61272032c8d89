// Asks the server; the token is in the address of the page.

import { unpacked } from "./wire.js";

/** A refused request, with the sentence of the server. */
export class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

/** The server of this page. */
export class Api {
  constructor(token, client) {
    this.headers = { "X-Inscape-Token": token };
    this.client = client;
  }

  /** Return the same server for a part of the page whose requests do not stop those of others. */
  as(part) {
    const own = new Api("", this.client + part);
    own.headers = this.headers;
    return own;
  }

  /** Return what the page needs to know at the start. */
  async session() {
    const answer = await fetch("/api/session", { headers: this.headers });
    if (!answer.ok) throw await refusal(answer);
    return answer.json();
  }

  /** Return facts and arrays; a signal stops the request. */
  async post(name, asked, signal) {
    const answer = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { ...this.headers, "Content-Type": "application/json" },
      body: JSON.stringify({ client: this.client, ...asked }),
      signal,
    });
    if (!answer.ok) throw await refusal(answer);
    return unpacked(await answer.arrayBuffer());
  }

  /** Call back with every event of the long job until it is done; a signal stops listening. */
  async progress(client, onEvent, signal) {
    const address = `/api/progress?client=${encodeURIComponent(client)}`;
    await eventsOf(await fetch(address, { headers: this.headers, signal }), onEvent);
  }

  /** Ask for something that is answered event by event; a signal stops it, on the server too. */
  async stream(name, asked, onEvent, signal) {
    const answer = await fetch(`/api/${name}`, {
      method: "POST",
      headers: { ...this.headers, "Content-Type": "application/json" },
      body: JSON.stringify({ client: this.client, ...asked }),
      signal,
    });
    if (!answer.ok) throw await refusal(answer);
    await eventsOf(answer, onEvent);
  }
}

async function eventsOf(answer, onEvent) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const events = (rest + value).split("\n\n");
    rest = events.pop();
    for (const event of events) onEvent(JSON.parse(event.replace(/^data: /, "")));
  }
}

async function refusal(answer) {
  const text = await answer.text();
  try {
    return new Refused(answer.status, JSON.parse(text).error);
  } catch {
    return new Refused(answer.status, text);
  }
}
