// Before anything is painted: the theme and the density chosen here earlier, else the system's.
"use strict";
(() => {
  const root = document.documentElement;
  try {
    const theme = localStorage.getItem("fila-theme");
    if (theme === "dark" || theme === "light") root.dataset.theme = theme;
    if (localStorage.getItem("fila-density") === "compact") root.dataset.density = "compact";
  } catch {
    // Storage is switched off: the system's theme it is.
  }
})();
