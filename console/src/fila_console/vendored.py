"""What others made and the console serves: where npm puts it, by the name it is served under. setup.py reads it."""

VENDOR = {
    "htmx.min.js": "htmx.org/dist/htmx.min.js",
    "uplot.min.js": "uplot/dist/uPlot.iife.min.js",
    "uplot.css": "uplot/dist/uPlot.min.css",
    "inter-latin.woff2": "@fontsource-variable/inter/files/inter-latin-wght-normal.woff2",
    "inter-latin-ext.woff2": "@fontsource-variable/inter/files/inter-latin-ext-wght-normal.woff2",
    "inter-greek.woff2": "@fontsource-variable/inter/files/inter-greek-wght-normal.woff2",
    "inter-cyrillic.woff2": "@fontsource-variable/inter/files/inter-cyrillic-wght-normal.woff2",
}
LICENCES = {
    "htmx.LICENSE": "htmx.org/LICENSE",
    "uplot.LICENSE": "uplot/LICENSE",
    "inter.LICENSE": "@fontsource-variable/inter/LICENSE",
}
