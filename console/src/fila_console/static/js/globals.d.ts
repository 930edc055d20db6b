// What the libraries put into every page.

interface Window {
  htmx: { registerExtension(name: string, extension: object): void };
  // uPlot's own types describe more than is used here, and its options are made in one place, plots.js.
  uPlot: any;
  trustedTypes?: { createPolicy(name: string, rules: object): unknown };
}
