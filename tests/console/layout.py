"""What a page keeps from who looks at it: what is cut, what is covered, and what lies beside the screen."""

from __future__ import annotations

_SHOWN = "(each) => each.checkVisibility({ visibilityProperty: true }) && !each.closest('.sr, .skip, dialog')"

CUT = f"""() => [...document.querySelectorAll("main td, th, .big, .sentence, h1, h2, button, .button")]
  .filter({_SHOWN}).filter((each) => each.scrollWidth > each.clientWidth + 1
    && getComputedStyle(each).display !== "inline" && getComputedStyle(each).overflowX !== "visible")
  .map((each) => each.innerText)"""
"""Cells, headings, sentences and buttons of which a part is not there."""

SIDEWAYS = f"""() => [...document.querySelectorAll("main .scroll")]
  .filter({_SHOWN}).filter((each) => each.scrollWidth > each.clientWidth + 1).map((each) => each.ariaLabel)"""
"""Tables that go on at the side."""

OFF_SCREEN = f"""() => [...document.querySelectorAll("body *")]
  .filter((each) => [...each.childNodes].some((child) => child.nodeType === 3 && child.data.trim()))
  .filter({_SHOWN}).filter((each) => !each.closest("svg, .scroll, pre, .editor"))
  .filter((each) => {{
    const box = each.getBoundingClientRect();
    return box.width > 0 && (box.right > innerWidth + 1 || box.left < -1);
  }}).map((each) => each.innerText.slice(0, 60))"""
"""Texts that lie beside the screen."""

COVERED = f"""(most) => {{
  const found = [];
  const all = [...document.querySelectorAll("main .sentence, main h1, main h2, main .big, main button, main a, #band")];
  for (const each of all.filter({_SHOWN}).slice(0, most)) {{
    each.scrollIntoView({{ block: "center", inline: "nearest", behavior: "instant" }});
    const box = each.getClientRects()[0];
    if (!box || !box.width) continue;
    const top = document.elementFromPoint(box.left + Math.min(box.width / 2, 12), box.top + box.height / 2);
    if (!(each.contains(top) || top?.contains(each))) found.push(each.innerText.slice(0, 60));
  }}
  for (const each of document.querySelectorAll("body *")) {{ each.scrollTop = 0; each.scrollLeft = 0; }}
  scrollTo(0, 0);
  return found;
}}"""
"""Sentences, headings, buttons and links that something lies on, wherever one scrolls."""
_LOOKED_AT = 300

EMPTY_SPACE = f"""() => [...document.querySelectorAll("main .scroll")].filter({_SHOWN}).filter((each) =>
  each.clientHeight - [...each.children].reduce((sum, child) => sum + child.offsetHeight, 0) > 8)
  .map((each) => each.ariaLabel)"""
"""Boxes that are higher than what is in them."""

WIDER = "() => document.documentElement.scrollWidth > innerWidth ? ['the page'] : []"

PROBES: dict[str, tuple[str, int | None]] = {
    "cut": (CUT, None),
    "goes on at the side": (SIDEWAYS, None),
    "beside the screen": (OFF_SCREEN, None),
    "wider than the screen": (WIDER, None),
    "covered": (COVERED, _LOOKED_AT),
}
"""JavaScript that lists what is so, by what is wrong then."""
