// Keeps the page current: one stream while the page is visible, none while it is not.

import { changeTables, showBand, showLines, showTables, showTexts } from "./cells.js";
import { addPoints, showPlots } from "./plots.js";

const SILENT_MS = 6000;
const RETRY_MS_MAX = 15000;

/** @type {EventSource|null} */
let source = null;
let heardAt = performance.now();
let toldAt = heardAt;
let hasFailed = false;
let retryMs = 1000;
/** @type {ReturnType<typeof setTimeout>|undefined} */
let retrying;

/** @param {(data: any) => void} show */
function heard(show) {
  return (/** @type {MessageEvent<string>} */ event) => {
    heardAt = toldAt = performance.now();
    hasFailed = event.type === "failed";
    retryMs = 1000;
    show(JSON.parse(event.data));
  };
}

/** @param {string} address */
function open(address) {
  close();
  const opened = new EventSource(address);
  source = opened;
  opened.addEventListener(
    "whole",
    heard((/** @type {import("./types.js").Whole} */ whole) => {
      showBand("");
      showTexts(whole.texts);
      showLines(whole.lines);
      showTables(whole.tables);
      showPlots(whole.plots);
      document.body.dataset.live = "yes";
    }),
  );
  opened.addEventListener(
    "changes",
    heard((/** @type {import("./types.js").Changes} */ changes) => {
      showBand("");
      showTexts(changes.texts);
      showLines(changes.lines);
      changeTables(changes.tables);
      addPoints(changes.plots);
    }),
  );
  opened.addEventListener(
    "failed",
    heard((/** @type {import("./types.js").Failure} */ failure) => {
      showBand(`● ${failure.title}. ${failure.text} ${failure.advice} The numbers are of before.`);
    }),
  );
  // The console is there, and has nothing from the broker.
  opened.addEventListener("here", () => {
    heardAt = performance.now();
  });
  opened.addEventListener("ended", () => {
    // The key is not valid any more: the page says who may go on.
    close();
    location.reload();
  });
  opened.addEventListener("error", () => {
    if (opened.readyState !== EventSource.CLOSED || source !== opened) return;
    close();
    retrying = setTimeout(() => open(address), retryMs);
    retryMs = Math.min(RETRY_MS_MAX, retryMs * 2);
  });
}

function close() {
  clearTimeout(retrying);
  source?.close();
  source = null;
}

/** Begin. */
export function keepCurrent() {
  const address = document.querySelector("main")?.dataset.live;
  if (!address) return;
  const follow = () => {
    heardAt = toldAt = performance.now();
    hasFailed = false;
    if (document.visibilityState === "visible") open(address);
    else close();
  };
  document.addEventListener("visibilitychange", follow);
  addEventListener("pagehide", close);
  addEventListener("pageshow", follow);
  setInterval(() => {
    const now = performance.now();
    if (document.visibilityState !== "visible" || now - toldAt < SILENT_MS) return;
    if (now - heardAt >= SILENT_MS) {
      const seconds = Math.round((now - heardAt) / 1000);
      showBand(
        `● Nothing came from the console for ${seconds} s: the numbers are of before. See whether fila console runs.`,
      );
    } else if (!hasFailed) {
      const seconds = Math.round((now - toldAt) / 1000);
      showBand(`● The broker has not answered for ${seconds} s: the numbers are of before.`);
    }
  }, 1000);
}
