// Keyboard, dialogs, tabs, theme and density: what a person does to the page itself.

/** @param {string} id */
function openDialog(id) {
  const dialog = document.getElementById(id);
  if (!(dialog instanceof HTMLDialogElement) || dialog.open) return;
  dialog.showModal();
  const field = dialog.querySelector("input");
  field?.select();
  field?.dispatchEvent(new CustomEvent("fila:opened"));
}

/** @returns {HTMLAnchorElement[]} the first link of each row that is seen */
function rowLinks() {
  const rows = document.querySelectorAll(document.querySelector("dialog[open]") ? "dialog[open] li" : "main tbody tr");
  const links = [...rows].filter((row) => row instanceof HTMLElement && row.offsetParent !== null).map((row) => row.querySelector("a"));
  return /** @type {HTMLAnchorElement[]} */ (links.filter((link) => link !== null));
}

/** @param {number} step */
function walk(step) {
  const links = rowLinks();
  const row = document.activeElement?.closest("tr, li");
  const here = links.findIndex((link) => row?.contains(link));
  const next = links[here < 0 ? (step > 0 ? 0 : links.length - 1) : here + step];
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

/**
 * The field that a key is meant for. One that is not shown takes none: a dialog that was closed keeps the focus until
 * the browser paints next, and keys pressed before that are meant for the page.
 * @param {EventTarget|null} target
 */
function typedInto(target) {
  if (!(target instanceof HTMLElement) || !target.checkVisibility()) return null;
  return target.matches("input:not([type=checkbox]), textarea, select") ? target : null;
}

/** @param {KeyboardEvent} event */
function pressed(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const field = typedInto(event.target);
  const inSearch = field?.id === "search-field";
  if (inSearch && event.key === "ArrowDown") walk(1);
  else if (inSearch && event.key === "Enter") rowLinks()[0]?.click();
  else if (field) return;
  else if (event.key === "/") openDialog("search");
  else if (event.key === "?") openDialog("help");
  else if (event.key === "j") walk(1);
  else if (event.key === "k") walk(-1);
  else if (event.key === "g") /** @type {HTMLElement|null} */ (document.querySelector(".brand"))?.click();
  else return;
  event.preventDefault();
}

/** @param {HTMLElement} list */
function makeTabs(list) {
  const tabs = /** @type {HTMLElement[]} */ ([...list.querySelectorAll("[role=tab]")]);
  /** @param {HTMLElement} chosen */
  const choose = (chosen) => {
    for (const tab of tabs) {
      const isChosen = tab === chosen;
      tab.setAttribute("aria-selected", String(isChosen));
      tab.tabIndex = isChosen ? 0 : -1;
      const panel = document.getElementById(tab.getAttribute("aria-controls") ?? "");
      if (panel) panel.hidden = !isChosen;
    }
  };
  for (const [place, tab] of tabs.entries()) {
    tab.addEventListener("click", () => choose(tab));
    tab.addEventListener("keydown", (event) => {
      const step = event.key === "ArrowRight" ? 1 : event.key === "ArrowLeft" ? -1 : 0;
      const next = tabs[(place + step + tabs.length) % tabs.length];
      if (!step || !next) return;
      choose(next);
      next.focus();
    });
    if (location.hash === `#${tab.id.replace("tab-", "")}`) choose(tab);
  }
}

/** @param {"theme"|"density"} name @param {string} value */
function keep(name, value) {
  document.documentElement.dataset[name] = value;
  try {
    localStorage.setItem(`fila-${name}`, value);
  } catch {
    // It holds for this page, then.
  }
}

function changeTheme() {
  const now = document.documentElement.dataset.theme ?? (matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
  keep("theme", now === "dark" ? "light" : "dark");
  dispatchEvent(new Event("fila:theme"));
}

/** @param {HTMLButtonElement} button puts its own text into the field it names, as if it was typed */
function fillIn(button) {
  const field = document.getElementById(button.dataset.fills ?? "");
  if (!(field instanceof HTMLInputElement)) return;
  field.value = (button.textContent ?? "").replaceAll(",", "");
  field.dispatchEvent(new Event("input", { bubbles: true }));
  field.focus();
}

/** Somebody who came to set one thing begins in its field. */
function enterField() {
  const field = location.hash.length > 1 ? document.getElementById(location.hash.slice(1)) : null;
  if (field instanceof HTMLInputElement) field.focus();
}

/** Begin. */
export function listen() {
  enterField();
  // What was asked for is so: the fields are empty again, and what they would change is told no more.
  document.addEventListener("fila:done", (event) => {
    const form = event.target instanceof Element ? event.target.closest("form[data-empties]") : null;
    if (!(form instanceof HTMLFormElement)) return;
    form.reset();
    form.dispatchEvent(new CustomEvent("fila:emptied"));
  });
  document.addEventListener("keydown", pressed);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => dispatchEvent(new Event("fila:theme")));
  for (const list of document.querySelectorAll("[role=tablist]")) if (list instanceof HTMLElement) makeTabs(list);
  document.addEventListener("click", (event) => {
    const button = event.target instanceof Element ? event.target.closest("button") : null;
    if (button?.dataset.opens) openDialog(button.dataset.opens);
    if (button?.dataset.fills) fillIn(button);
    if (button && "themeButton" in button.dataset) changeTheme();
    if (button && "densityButton" in button.dataset) keep("density", document.documentElement.dataset.density === "compact" ? "normal" : "compact");
  });
}
