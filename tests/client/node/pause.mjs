// The openai client for Node against a server, one scenario a run: node pause.mjs URL FOLDER-OF-node_modules SCENARIO
import assert from "node:assert/strict";
import { createRequire } from "node:module";

const [url, folder, scenario] = process.argv.slice(2);
const { OpenAI } = createRequire(`${folder}/package.json`)("openai");
const client = new OpenAI({ baseURL: url + "/v1", apiKey: "none", maxRetries: 0 });
const ask = { model: "tiny", messages: [{ role: "user", content: "Hello" }], seed: 11, max_tokens: 200 };
const endless = { ...ask, max_tokens: 8000, ignore_eos: true, stream: true };

const chat = (more) => client.chat.completions.create({ ...ask, ...more });
const textOf = (chunk) => chunk.choices[0]?.delta?.content ?? "";
const isKeepAlive = (chunk) => chunk.choices.length === 1 && Object.keys(chunk.choices[0].delta).length === 0 && chunk.choices[0].finish_reason === null;
const undisturbed = async (more) => (await chat(more)).choices[0].message.content;
const generationOf = async (response) => response.headers.get("x-fermata-generation");

// Polls: the time-out of the test bounds it.
async function record(generation, isIt) {
  for (;;) {
    const found = await client.get(`/generations/${generation}`);
    if (isIt(found)) return found;
  }
}
const resume = (pause, more) => client.post("/resume", { body: { pause_id: pause.pause_id, ...more }, ...(more ?? {}) });

const scenarios = {
  // Held: the stream says nothing but keep-alives, and goes on when the pause is resumed.
  async held() {
    let text = "";
    let generation = null;
    let nKeepAlives = 0;
    for await (const chunk of await chat({ stream: true, fermata: { pause_at: 20 } })) {
      generation ??= chunk.fermata?.generations[0];
      text += textOf(chunk);
      if (!isKeepAlive(chunk) || ++nKeepAlives !== 3) continue;
      await resume((await record(generation, (found) => found.pause)).pause);
    }
    assert.ok(nKeepAlives >= 3);
    assert.equal(text, await undisturbed());
  },

  // Without a stream: the promise waits through the pause.
  async whole() {
    const waiting = chat({ fermata: { pause_at: 20, client_id: "node-whole" } });
    let found = null;
    while (found === null) found = await client.get("/generations/client:node-whole").catch((error) => (assert.equal(error.status, 404), null));
    await resume((await record("client:node-whole", (one) => one.pause)).pause);
    assert.equal((await waiting).choices[0].message.content, await undisturbed());
  },

  // Returned: the answer ends with finish_reason "pause"; /v1/resume goes on as a stream.
  async returned() {
    const first = await chat({ fermata: { pause_at: 10, on_pause: "return" } });
    assert.equal(first.choices[0].finish_reason, "pause");
    let text = first.choices[0].message.content;
    for await (const chunk of await resume(first.choices[0].pause, { stream: true })) text += textOf(chunk);
    assert.equal(text, await undisturbed());
  },

  // The client's own gathering of chunks, over a pause: keep-alives add nothing.
  async gathered() {
    const stream = client.chat.completions.stream({ ...ask, stream_options: { include_usage: true }, fermata: { pause_at: 20, client_id: "node-gathered" } });
    let nKeepAlives = 0;
    stream.on("chunk", (chunk) => {
      if (isKeepAlive(chunk) && ++nKeepAlives === 3) client.post("/generations/client:node-gathered/resume", { body: {} });
    });
    const whole = await stream.finalChatCompletion();
    assert.equal(whole.choices[0].message.content, await undisturbed());
    assert.equal(whole.usage.completion_tokens, 200);
  },

  // One chunk with usage and without choices, only if it was asked for; a stop string is not shown.
  async usage() {
    const text = await undisturbed();
    const stop = text.slice(20, 24);
    const chunks = [];
    for await (const chunk of await chat({ stream: true, stop, stream_options: { include_usage: true } })) chunks.push(chunk);
    assert.equal(chunks.map(textOf).join(""), text.slice(0, text.indexOf(stop)));
    const usages = chunks.filter((chunk) => chunk.usage);
    assert.equal(usages.length, 1);
    assert.deepEqual(chunks.at(-1).choices, []);
    assert.equal(chunks.at(-2).choices[0].finish_reason, "stop");
    for await (const chunk of await chat({ stream: true, stop })) assert.equal(chunk.choices.length, 1);
  },

  // Cancelled by somebody: an error, not an end.
  async cancelled() {
    await assert.rejects(async () => {
      for await (const chunk of await client.chat.completions.create(endless))
        if (chunk.fermata) await client.post(`/generations/${chunk.fermata.generations[0]}/cancel`, { body: {} });
    }, (error) => error instanceof OpenAI.APIError && error.code === "cancelled");
  },

  // Left: breaking off the loop ends the generation.
  async left() {
    let generation = null;
    for await (const chunk of await client.chat.completions.create(endless)) {
      generation = chunk.fermata.generations[0];
      break;
    }
    assert.equal((await record(generation, (found) => found.state === "finished")).end_reason, "disconnected");
  },

  // Aborted while it is paused: likewise.
  async aborted() {
    const { data: stream, response } = await client.chat.completions.create({ ...endless, fermata: { pause_at: 5 } }).withResponse();
    const generation = await generationOf(response);
    for await (const chunk of stream) if (isKeepAlive(chunk)) stream.controller.abort();
    const found = await record(generation, (one) => one.state === "finished");
    assert.equal(found.end_reason, "disconnected");
    assert.equal(found.usage.completion_tokens, 5);
  },

  // The client posts a 409 again, twice, unless it is told that this cannot help.
  async refused() {
    let nPosts = 0;
    const counting = new OpenAI({ baseURL: url + "/v1", apiKey: "none", fetch: (...sent) => (++nPosts, fetch(...sent)) });
    const done = await chat({ max_tokens: 1 });
    await assert.rejects(counting.post(`/generations/${done.fermata.generations[0]}/pause`, { body: {} }), (error) => error.status === 409 && error.code === "wrong_state");
    assert.equal(nPosts, 1);
    await assert.rejects(chat({ n: 2 }), (error) => error instanceof OpenAI.BadRequestError && error.param === "n");
  },

  // Without a body the client sends no content type.
  async bodiless() {
    const done = await chat({ max_tokens: 1 });
    await assert.rejects(client.post(`/generations/${done.fermata.generations[0]}/cancel`), (error) => error.status === 415);
  },

  // For the test of proxies: a stream that somebody else resumes; says what came of it.
  async through(clientId) {
    let text = "";
    let nKeepAlives = 0;
    for await (const chunk of await chat({ stream: true, fermata: { pause_at: 20, client_id: clientId } })) {
      text += textOf(chunk);
      if (isKeepAlive(chunk)) ++nKeepAlives;
    }
    console.log(JSON.stringify({ text, keep_alives: nKeepAlives }));
  },
};

await scenarios[scenario](...process.argv.slice(5));
