// The editor of scripts: a plain textarea over a painted copy of its text, with line numbers and the line that failed.

const WORDS = new Set("and break do else elseif end false for function goto if in local nil not or repeat return then true until while".split(" "));
const TOKEN = /--\[\[[\s\S]*?(?:\]\]|$)|--[^\n]*|"(?:\\.|[^"\\\n])*"?|'(?:\\.|[^'\\\n])*'?|\[\[[\s\S]*?(?:\]\]|$)|[A-Za-z_]\w*|[^A-Za-z_"'[-]+|[\s\S]/g;
const PAINTED_MAX = 65536;

/** @param {string} token */
function kind(token) {
  if (token.startsWith("--")) return "lua-note";
  if (/^["']|^\[\[/.test(token)) return "lua-text";
  return WORDS.has(token) ? "lua-word" : "";
}

/** @param {HTMLElement} editor */
function start(editor) {
  const area = editor.querySelector("textarea");
  const paint = /** @type {HTMLElement} */ (editor.querySelector(".paint"));
  const gutter = /** @type {HTMLElement} */ (editor.querySelector(".gutter"));
  const paper = editor.querySelector(".paper");
  if (!area) return;
  const wrong = Number(/:(\d+):/.exec(area.dataset.error ?? "")?.[1] ?? 0);
  const draw = () => {
    const text = area.value;
    const isPainted = text.length <= PAINTED_MAX;
    paper?.classList.toggle("painted", isPainted);
    const parts = (isPainted ? (text.match(TOKEN) ?? []) : []).map((token) => {
      const name = kind(token);
      if (!name) return token;
      const span = document.createElement("span");
      span.className = name;
      span.textContent = token;
      return span;
    });
    paint.replaceChildren(...parts, "\n");
    const lines = text.split("\n").length;
    gutter.replaceChildren(
      ...Array.from({ length: lines }, (_, place) => {
        const line = document.createElement("span");
        line.textContent = `${place + 1}\n`;
        if (place + 1 === wrong) {
          line.className = "wrong";
          line.title = area.dataset.error ?? "";
        }
        return line;
      }),
    );
  };
  const follow = () => {
    paint.scrollTop = area.scrollTop;
    paint.scrollLeft = area.scrollLeft;
    gutter.scrollTop = area.scrollTop;
  };
  area.addEventListener("input", draw);
  area.addEventListener("scroll", follow);
  draw();
}

for (const editor of document.querySelectorAll("[data-lua]")) if (editor instanceof HTMLElement) start(editor);
