// A tenant's page. Its key stands behind the # of the address, which is sent nowhere; from here it goes as a bearer with
// one POST, whose answer is the page's stream. No cookie goes along, so no login is used, and none is replaced.

import { changeTables, findTables, showBand, showTables, showTexts } from "./cells.js";
import { addPoints, findPlots, showPlots } from "./plots.js";

const RETRY_MS_MAX = 15000;
const TEXT_MAX = 1 << 20;
const SILENT_MS = 6000;

/** @type {AbortController|null} */
let asking = null;
let retryMs = 1000;
/** @type {ReturnType<typeof setTimeout>|undefined} */
let retrying;

let toldAt = performance.now();
let hasFailed = false;

/** The numbers go, and a sentence says why. @param {string} text */
function end(text) {
  stop();
  showBand("");
  document.getElementById("numbers")?.remove();
  showTexts({ headline: { t: text, tone: "lost" }, at: { t: "" } });
  document.body.dataset.over = "yes";
}

function stop() {
  clearTimeout(retrying);
  asking?.abort();
  asking = null;
}

function again() {
  retrying = setTimeout(follow, retryMs);
  retryMs = Math.min(RETRY_MS_MAX, retryMs * 2);
}

/** The console is there, and has nothing from the broker. */
function stillWaiting() {
  const seconds = Math.round((performance.now() - toldAt) / 1000);
  if (hasFailed || seconds * 1000 < SILENT_MS) return;
  showBand(`● The broker has not answered for ${seconds} s: the numbers are of before.`);
}

/** @param {string} name @param {any} data */
function take(name, data) {
  if (name === "here") return stillWaiting();
  toldAt = performance.now();
  hasFailed = name === "failed";
  if (name === "ended") return end("● This link has ended: it expired, or it was revoked. Ask for another one.");
  if (name === "failed") return showBand(`● ${data.title}. ${data.text} ${data.advice} The numbers are of before.`);
  showBand("");
  retryMs = 1000;
  const numbers = document.getElementById("numbers");
  if (numbers) numbers.hidden = false;
  showTexts(data.texts);
  if (name === "whole") {
    showTables(data.tables);
    showPlots(data.plots);
    document.body.dataset.live = "yes";
  } else {
    changeTables(data.tables);
    addPoints(data.plots);
  }
}

/** @param {string} block one event as it travels */
function read(block) {
  let name = "";
  let data = "";
  for (const line of block.split("\n")) {
    if (line.startsWith("event: ")) name = line.slice(7);
    if (line.startsWith("data: ")) data += line.slice(6);
  }
  if (name) take(name, JSON.parse(data));
}

/** @param {ReadableStream<Uint8Array>} body */
async function readAll(body) {
  const reader = body.getReader();
  const decoder = new TextDecoder();
  let text = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    text += decoder.decode(value, { stream: true });
    const blocks = text.split("\n\n");
    text = blocks.pop() ?? "";
    if (text.length > TEXT_MAX) return;
    for (const block of blocks) read(block);
  }
}

async function follow() {
  stop();
  const address = document.querySelector("main")?.dataset["link"];
  const key = location.hash.slice(1);
  if (!address || document.body.dataset.over) return;
  if (!/^fila_[a-z0-9]{1,32}_[A-Za-z0-9]{40,128}$/.test(key)) {
    end("● This is no link: its end, behind the #, is missing or was cut off. Ask for it again.");
    return;
  }
  const own = new AbortController();
  asking = own;
  try {
    const answer = await fetch(address, {
      method: "POST",
      headers: { authorization: `Bearer ${key}`, accept: "text/event-stream" },
      credentials: "omit",
      cache: "no-store",
      redirect: "error",
      referrerPolicy: "no-referrer",
      signal: own.signal,
    });
    if (answer.status === 401 || answer.status === 403) {
      end(`● ${(await answer.text()).trim()}`);
      return;
    }
    if (answer.ok && answer.body) await readAll(answer.body);
    else showBand(`● ${(await answer.text()).slice(0, 500).trim()}`);
  } catch {
    if (own.signal.aborted) return;
    showBand("● Nothing comes from the console: the numbers are of before. It is tried again.");
  }
  if (asking === own) again();
}

findTables();
findPlots();
document.addEventListener("visibilitychange", () => {
  if (document.visibilityState === "visible") void follow();
  else stop();
});
addEventListener("hashchange", () => location.reload());
addEventListener("pagehide", stop);
void follow();
