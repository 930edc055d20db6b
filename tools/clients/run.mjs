// Carries out calls that come in lines, by openapi-fetch, and answers each in a line.
import { createInterface } from "node:readline";

import createClient from "openapi-fetch";

const [base, key] = process.argv.slice(2);
const client = createClient({ baseUrl: base, headers: { authorization: `Bearer ${key}` } });
const keyless = createClient({ baseUrl: base });

// The data of the first event of a stream, of which the rest is not read.
async function firstEvent(stream, given) {
  let text = "";
  for await (const piece of stream.pipeThrough(new TextDecoderStream())) {
    text += piece;
    const found = /^data: ?(.*)\n/m.exec(text);
    if (found) {
      given.abort();
      return found[1];
    }
  }
  throw new Error(`the stream ended without an event: ${text}`);
}

async function carryOut(call) {
  const ended = new AbortController();
  const options = { params: call.parameters, signal: ended.signal };
  if (call.body != null) options.body = call.body;
  if (call.raw != null) {
    options.body = Buffer.from(call.raw, "base64");
    options.bodySerializer = (body) => body;
    options.headers = { "content-type": "application/octet-stream" };
  }
  if (call.stream) options.parseAs = "stream";
  const { data, error, response } = await (call.keyless ? keyless : client)[call.verb](call.url, options);
  const told = { status: response.status, problem: error };
  told.data = call.stream && data ? await firstEvent(data, ended) : data;
  return told;
}

for await (const line of createInterface({ input: process.stdin })) {
  process.stdout.write(`${JSON.stringify(await carryOut(JSON.parse(line)))}\n`);
}
