// Nothing but htmx may turn text into elements, and nothing may turn text into code. What htmx puts in comes from our
// own server, which escapes it; the browser refuses every other way by the page's content policy.
"use strict";
(() => {
  const rules = {
    createHTML: (/** @type {string} */ text) => text,
    createScript: () => {
      throw new TypeError("no script is made from text here");
    },
  };
  const policy = window.trustedTypes ? window.trustedTypes.createPolicy("htmx", rules) : rules;
  const refuse = () => {
    throw new TypeError("no code is made from text here");
  };
  window.htmx.registerExtension("fila", {
    init: (/** @type {import("./types.js").HtmxInternals} */ internals) => internals.initSecurity(policy, refuse, refuse),
  });
})();
