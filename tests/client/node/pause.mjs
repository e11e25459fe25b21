// The openai client for Node against a server, by hand (../README.md): pause, resume, cancel, abort.
//   npm install openai@6 && node pause.mjs http://127.0.0.1:8080
import assert from "node:assert/strict";
import OpenAI from "openai";

const client = new OpenAI({ baseURL: process.argv[2] + "/v1", apiKey: "none", maxRetries: 0 });
const ask = { model: (await client.models.list()).data[0].id, messages: [{ role: "user", content: "Hello" }], seed: 11, max_tokens: 200 };
const endless = { ...ask, max_tokens: 4000, ignore_eos: true, stream: true };
const undisturbed = (await client.chat.completions.create(ask)).choices[0].message.content;
const textOf = (chunk) => chunk.choices[0]?.delta?.content ?? "";

// Held: the stream stays open, and goes on when the pause is resumed.
let held = "";
let generation = null;
let nChunks = 0;
for await (const chunk of await client.chat.completions.create({ ...ask, stream: true, fermata: { pause_at: 20 } })) {
  generation ??= chunk.fermata?.generations[0];
  held += textOf(chunk);
  if (++nChunks !== 5) continue;
  let record = null;
  while (record === null) record = (await client.get(`/generations/${generation}`)).pause;
  await client.post("/resume", { body: { pause_id: record.pause_id } });
}
assert.equal(held, undisturbed);

// Returned: the answer ends with finish_reason "pause"; /v1/resume goes on as a stream.
const first = await client.chat.completions.create({ ...ask, fermata: { pause_at: 10, on_pause: "return" } });
assert.equal(first.choices[0].finish_reason, "pause");
let returned = first.choices[0].message.content;
const body = { pause_id: first.choices[0].pause.pause_id, stream: true };
for await (const chunk of await client.post("/resume", { body, stream: true })) returned += textOf(chunk);
assert.equal(returned, undisturbed);

// Cancelled by somebody: an error, not an end.
await assert.rejects(async () => {
  for await (const chunk of await client.chat.completions.create(endless))
    if (chunk.fermata) await client.post(`/generations/${chunk.fermata.generations[0]}/cancel`, { body: {} });
}, (error) => error.code === "cancelled");

// Left: breaking off the loop ends the generation.
for await (const chunk of await client.chat.completions.create(endless)) {
  generation = chunk.fermata.generations[0];
  break;
}
let record = null;
while (record?.state !== "finished") record = await client.get(`/generations/${generation}`);
assert.equal(record.end_reason, "disconnected");

// Without a body the client sends no content type.
await assert.rejects(client.post(`/generations/${generation}/cancel`), (error) => error.status === 415);
console.log("all as expected");
