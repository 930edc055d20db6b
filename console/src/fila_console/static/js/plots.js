// Lines over an hour, or over days, drawn by uPlot. A gap is where nothing was recorded. Each plot has its numbers as a table below.

/** @typedef {import("./types.js").WholePlot} WholePlot */
/** @typedef {import("./types.js").NewestPoint} NewestPoint */

const STEPS_MAX = 360;
const TABLE_ROWS = 60;
const HEIGHT = 320;
const MINUTES_MIN = 10;

/** @param {string} name */
const color = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

/** @param {number} seconds */
const clock = (seconds) => `${new Date(seconds * 1000).toISOString().slice(11, 19)} UTC`;

/** @param {number} seconds */
const moment = (seconds) => `${new Date(seconds * 1000).toISOString().slice(0, 16).replace("T", " ")} UTC`;

/** @param {number} seconds */
function age(seconds) {
  if (seconds < 60) return `${seconds.toFixed(seconds < 10 ? 1 : 0)} s`;
  if (seconds < 3600) return `${(seconds / 60).toFixed(seconds < 600 ? 1 : 0)} min`;
  return seconds < 86400 ? `${(seconds / 3600).toFixed(1)} h` : `${(seconds / 86400).toFixed(1)} d`;
}

/** @param {number|null|undefined} value @param {string} unit */
function written(value, unit) {
  if (value === null || value === undefined) return "–";
  if (unit.startsWith("share")) return `${(value * 100).toFixed(0)} %`;
  if (unit === "messages") return Math.round(value).toLocaleString("en");
  if (unit === "seconds") return age(value);
  return value < 100 ? `${value.toFixed(1)}/s` : `${Math.round(value).toLocaleString("en")}/s`;
}

class PlotView {
  /** @param {HTMLElement} figure */
  constructor(figure) {
    this.canvas = /** @type {HTMLElement} */ (figure.querySelector(".canvas"));
    this.readout = /** @type {HTMLElement} */ (figure.querySelector(".readout"));
    this.details = /** @type {HTMLDetailsElement} */ (figure.querySelector("details"));
    /** @type {WholePlot} */
    this.data = { times: [], series: {}, colors: {}, dashed: [], unit: "", step: 10 };
    /** @type {any} */
    this.plot = null;
    this.drawn = "";
    this.added = 0;
    new ResizeObserver(() => this.plot?.setSize({ width: this.canvas.clientWidth, height: HEIGHT })).observe(this.canvas);
    this.details.addEventListener("toggle", () => this.tabulate());
    addEventListener("fila:theme", () => {
      this.drawn = "";
      this.draw();
    });
  }

  /** @param {WholePlot} data */
  whole(data) {
    this.data = data;
    this.draw();
  }

  /** @param {NewestPoint} point */
  add(point) {
    if (point.at === null) return;
    const { times, series } = this.data;
    const newest = times[times.length - 1];
    if (newest !== undefined && point.at < newest) return;
    if (newest !== point.at) {
      // Steps that nobody recorded are gaps.
      for (let at = newest === undefined ? point.at : newest + this.data.step; at <= point.at; at += this.data.step) {
        times.push(at);
        for (const values of Object.values(series)) values.push(null);
      }
    }
    const place = times.length - 1;
    for (const [label, value] of Object.entries(point.values)) {
      series[label] ??= times.map(() => null);
      series[label][place] = value;
    }
    for (const label of Object.keys(series)) if (!(label in point.values)) delete series[label];
    while (times.length > STEPS_MAX) {
      times.shift();
      for (const values of Object.values(series)) values.shift();
    }
    this.data.colors = point.colors;
    this.data.dashed = point.dashed;
    this.draw();
  }

  draw() {
    const labels = Object.keys(this.data.series);
    const lines = this.lines(labels);
    const wanted = JSON.stringify([labels, this.data.colors, this.data.dashed, this.data.unit]);
    if (this.plot && this.drawn === wanted) {
      this.plot.setData(lines);
    } else {
      this.drawn = wanted;
      this.plot?.destroy();
      this.plot = new window.uPlot(this.options(labels), lines, this.canvas);
    }
    if (this.details.open) this.tabulate();
  }

  /**
   * At least ten minutes wide, so that a minute of numbers is no line from edge to edge.
   * @param {string[]} labels
   */
  lines(labels) {
    const { times, series } = this.data;
    const first = times[0] ?? 0;
    const begin = (times[times.length - 1] ?? 0) - MINUTES_MIN * 60;
    this.added = times.length > 0 && begin < first ? 1 : 0;
    const before = this.added ? [null] : [];
    return [this.added ? [begin, ...times] : times, ...labels.map((label) => [...before, ...(series[label] ?? [])])];
  }

  /** @param {string[]} labels */
  options(labels) {
    const axis = { stroke: color("--quiet"), grid: { stroke: color("--line"), width: 1 }, ticks: { stroke: color("--line"), width: 1 }, font: "12px 'Inter Variable', sans-serif" };
    const unit = this.data.unit;
    return {
      width: this.canvas.clientWidth,
      height: HEIGHT,
      legend: { show: false },
      cursor: { drag: { x: false, y: false }, points: { size: 6 } },
      hooks: { setCursor: [() => this.read()] },
      tzDate: (/** @type {number} */ at) => window.uPlot.tzDate(new Date(at * 1000), "UTC"),
      scales: { y: { range: (/** @type {any} */ _, /** @type {number} */ low, /** @type {number} */ high) => [0, unit.startsWith("share") ? Math.min(1, Math.max(0.1, high * 1.1)) : Math.max(1, (high ?? low ?? 0) * 1.1)] } },
      axes: [
        { ...axis, space: 80, values: (/** @type {any} */ _, /** @type {number[]} */ at, /** @type {number} */ __, /** @type {number} */ ___, /** @type {number} */ apart) => at.map((each) => (apart < 60 ? clock(each).slice(0, 8) : apart < 86400 && each % 86400 ? clock(each).slice(0, 5) : moment(each).slice(5, 10))) },
        { ...axis, size: 56, values: (/** @type {any} */ _, /** @type {number[]} */ at) => at.map((each) => written(each, unit)) },
      ],
      series: [{}, ...labels.map((label) => this.series(label))],
    };
  }

  /** @param {string} label */
  series(label) {
    const isDashed = this.data.dashed.includes(label);
    const place = this.data.colors[label] ?? -1;
    return {
      label,
      stroke: color(place < 0 ? "--quiet" : `--series-${place}`),
      width: isDashed ? 1 : 2,
      dash: isDashed ? [4, 4] : undefined,
      spanGaps: false,
      points: { show: (/** @type {any} */ plot, /** @type {number} */ _, /** @type {number} */ first, /** @type {number} */ last) => !isDashed && last - first < 4, size: 4 },
    };
  }

  read() {
    const place = (this.plot?.cursor.idx ?? -1) - this.added;
    if (place < 0) {
      this.readout.textContent = "";
      return;
    }
    const told = Object.entries(this.data.series).map(([label, values]) => `${label} ${written(values[place], this.data.unit)}`);
    this.readout.textContent = [this.time(place), ...told].join(" · ");
  }

  /** @param {number} place */
  time(place) {
    const at = this.data.times[place] ?? 0;
    return this.data.step > 10 ? moment(at) : clock(at);
  }

  tabulate() {
    const place = this.details.querySelector("div");
    if (!this.details.open || !place) return;
    const labels = Object.keys(this.data.series);
    const table = document.createElement("table");
    const head = table.createTHead().insertRow();
    for (const label of ["Time", ...labels]) {
      const cell = document.createElement("th");
      cell.scope = "col";
      cell.textContent = label;
      head.append(cell);
    }
    const body = table.createTBody();
    const first = Math.max(0, this.data.times.length - TABLE_ROWS);
    for (let at = this.data.times.length - 1; at >= first; at--) {
      const row = body.insertRow();
      row.insertCell().textContent = this.time(at);
      for (const label of labels) row.insertCell().textContent = written(this.data.series[label]?.[at], this.data.unit);
    }
    place.replaceChildren(table);
  }
}

/** @type {Map<string, PlotView>} */
const views = new Map();

/** Find the plots of the page. */
export function findPlots() {
  for (const figure of document.querySelectorAll("figure[data-plot]")) {
    if (figure instanceof HTMLElement) views.set(figure.dataset.plot ?? "", new PlotView(figure));
  }
}

/** @param {Record<string, WholePlot>} plots */
export function showPlots(plots) {
  for (const [name, data] of Object.entries(plots)) views.get(name)?.whole(data);
}

/** @param {Record<string, NewestPoint|WholePlot>} points */
export function addPoints(points) {
  for (const [name, point] of Object.entries(points)) {
    if ("times" in point) views.get(name)?.whole(point);
    else views.get(name)?.add(point);
  }
}
