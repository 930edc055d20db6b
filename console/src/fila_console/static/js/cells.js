// Puts cells, texts and tables into the page: as text, never as markup. macros.html writes the same elements first.

/** @typedef {import("./types.js").Cell} Cell */
/** @typedef {import("./types.js").Row} Row */
/** @typedef {import("./types.js").RowChanges} RowChanges */

const SVG = "http://www.w3.org/2000/svg";
const REORDER_MS = 5000;
const BAR_WIDTH = 48;

/** @param {HTMLElement} element @param {string|undefined} tone */
function setTone(element, tone) {
  if (tone) element.dataset.tone = tone;
  else delete element.dataset.tone;
}

/** @param {string} path @returns {boolean} whether it is an address of ours */
function isOurs(path) {
  return path.startsWith("/b/");
}

/** @param {number} part */
function bar(part) {
  const svg = document.createElementNS(SVG, "svg");
  svg.setAttribute("class", "bar");
  svg.setAttribute("width", String(BAR_WIDTH));
  svg.setAttribute("height", "8");
  svg.setAttribute("aria-hidden", "true");
  const rect = document.createElementNS(SVG, "rect");
  rect.setAttribute("width", String(part * BAR_WIDTH));
  rect.setAttribute("height", "8");
  svg.append(rect);
  return svg;
}

/**
 * What is there already is changed in place, so that a link keeps its focus.
 * @param {HTMLElement} place @param {Cell} cell
 */
function fill(place, cell) {
  const href = cell.href && isOurs(cell.href) ? cell.href : "";
  const old = place.querySelector("a");
  const hasSame = Boolean(old) === Boolean(href) && cell.color === undefined && cell.bar === undefined;
  if (hasSame && old && href && place.childElementCount === 1) {
    if (old.textContent !== cell.t) old.textContent = cell.t;
    if (old.getAttribute("href") !== href) old.href = href;
  } else {
    const text = old && href ? old : href ? document.createElement("a") : document.createTextNode("");
    if (text.textContent !== cell.t) text.textContent = cell.t;
    if (text instanceof HTMLAnchorElement && text.getAttribute("href") !== href) text.href = href;
    for (const child of [...place.childNodes]) if (child !== text) child.remove();
    if (text.parentNode !== place) place.append(text);
    const before = [];
    if (cell.color !== undefined) {
      const swatch = document.createElement("i");
      swatch.className = `swatch color-${cell.color}`;
      before.push(swatch);
    }
    if (cell.bar !== undefined) before.push(bar(cell.bar));
    place.prepend(...before);
  }
  setTone(place, cell.tone);
  if (cell.title) place.title = cell.title;
  else place.removeAttribute("title");
}

/** @param {Record<string, Cell>} texts */
export function showTexts(texts) {
  for (const [name, cell] of Object.entries(texts)) {
    for (const place of document.querySelectorAll(`[data-text="${CSS.escape(name)}"]`)) {
      if (!(place instanceof HTMLElement)) continue;
      if (place.textContent !== cell.t) place.textContent = cell.t;
      setTone(place, cell.tone);
      if ("shown" in place.dataset) place.hidden = !cell.t;
      if (place instanceof HTMLAnchorElement && cell.href && isOurs(cell.href)) place.href = cell.href;
      if (place instanceof HTMLAnchorElement) place.title = cell.title ?? "";
    }
    const field = document.querySelector(`[data-value="${CSS.escape(name)}"]`);
    if (field instanceof HTMLInputElement) field.value = cell.t;
    if (cell.bar !== undefined) {
      document.querySelector(`[data-bar="${CSS.escape(name)}"]`)?.setAttribute("width", `${cell.bar * 100}%`);
    }
  }
}

/** The line across the top of a page, above what is of before then. @param {string} text what is wrong; empty when nothing is */
export function showBand(text) {
  const place = document.getElementById("band");
  if (!place) return;
  if (place.textContent !== text) place.textContent = text;
  place.hidden = !text;
  // What is shown is of before, and looks so: nobody takes it for what is.
  if (text) document.body.dataset.old = "yes";
  else delete document.body.dataset.old;
}

/** @param {Record<string, string>} lines */
export function showLines(lines) {
  for (const [name, points] of Object.entries(lines)) {
    document.querySelector(`[data-line="${CSS.escape(name)}"]`)?.setAttribute("d", points);
  }
}

/**
 * One table. Rows keep their places in the page and change what they show, so that nothing moves; which row stands
 * where changes at most every five seconds, and never while somebody points at the table or works in it.
 */
class Table {
  /** @param {HTMLTableElement} table */
  constructor(table) {
    this.table = table;
    this.body = table.tBodies[0] ?? table.createTBody();
    /** @type {Map<string, Row>} */
    this.rows = new Map();
    /** @type {string[]} what the server last said */
    this.order = [];
    /** @type {string[]} what is shown */
    this.shown = [];
    this.orderedAt = 0;
    this.numeric = [...(table.tHead?.rows[0]?.cells ?? [])].map((cell) => cell.classList.contains("number"));
    this.empty = table.parentElement?.querySelector(".empty");
    table.addEventListener("mouseleave", () => this.show());
    this.body.addEventListener("click", (event) => this.open(event));
  }

  /** @param {MouseEvent} event a row is a link, too */
  open(event) {
    const target = event.target;
    if (!(target instanceof Element) || target.closest("a, input, button") || getSelection()?.toString()) return;
    target.closest("tr")?.querySelector("a")?.click();
  }

  /** @param {Row[]} rows */
  whole(rows) {
    this.rows = new Map(rows.map((row) => [row.id, row]));
    this.order = rows.map((row) => row.id);
    // What is there already came with the page, in this order or one that is hardly older.
    this.show();
  }

  /** @param {RowChanges} changes */
  change(changes) {
    for (const row of changes.rows ?? []) this.rows.set(row.id, row);
    if (changes.order) {
      this.order = changes.order;
      const there = new Set(this.order);
      for (const id of this.rows.keys()) if (!there.has(id) && !this.shown.includes(id)) this.rows.delete(id);
    }
    this.show();
  }

  get isInUse() {
    const held = this.table.closest("[data-hold] .scroll");
    return (
      this.body.matches(":hover") || this.body.contains(document.activeElement) || (held !== null && held.scrollTop > 8)
    );
  }

  show() {
    const now = performance.now();
    const isMoved = this.order.some((id, place) => this.shown[place] !== id) || this.order.length !== this.shown.length;
    const isFirst = this.shown.length === 0;
    // Where nothing of what is shown is there any more, such as "reading …", there is nothing to keep in its place.
    const isNew = !this.shown.some((id) => this.order.includes(id));
    if (isMoved && (isFirst || (!this.isInUse && (isNew || now - this.orderedAt >= REORDER_MS)))) {
      this.shown = [...this.order];
      this.orderedAt = now;
    }
    for (const [place, id] of this.shown.entries()) {
      const row = this.rows.get(id);
      if (row) this.write(this.body.rows[place] ?? this.body.insertRow(), row);
    }
    while (this.body.rows.length > this.shown.length) this.body.deleteRow(-1);
    if (this.empty instanceof HTMLElement) this.empty.hidden = this.shown.length > 0;
  }

  /** @param {HTMLTableRowElement} element @param {Row} row */
  write(element, row) {
    const before = element.dataset.id === row.id ? this.before.get(element) : undefined;
    this.before.set(element, row);
    element.dataset.id = row.id;
    setTone(element, row.tone);
    for (const [place, cell] of row.cells.entries()) {
      let into = element.cells[place];
      if (!into) {
        into = element.insertCell();
        if (this.numeric[place]) into.className = "number";
      }
      // Only what changed, so that a selection or a focus elsewhere in the row stays.
      if (JSON.stringify(before?.cells[place]) !== JSON.stringify(cell)) fill(into, cell);
    }
  }

  /** @type {WeakMap<HTMLTableRowElement, Row>} */
  before = new WeakMap();
}

/** @type {Map<string, Table>} */
const tables = new Map();

/** Find the tables of the page. */
export function findTables() {
  for (const table of document.querySelectorAll("table[data-table]")) {
    if (table instanceof HTMLTableElement) tables.set(table.dataset.table ?? "", new Table(table));
  }
}

/** @param {Record<string, Row[]>} whole */
export function showTables(whole) {
  for (const [name, rows] of Object.entries(whole)) tables.get(name)?.whole(rows);
}

/** @param {Record<string, RowChanges>} changes */
export function changeTables(changes) {
  for (const table of tables.values()) {
    const name = table.table.dataset.table ?? "";
    if (changes[name]) table.change(changes[name]);
    else table.show();
  }
}
