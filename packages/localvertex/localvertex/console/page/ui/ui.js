// Everything in this folder that views use.
export * from "./address.js";
export * from "./controls.js";
export * from "./html.js";
export * from "./metrics.js";
export * from "./page.js";
export * from "./state.js";
export * from "./table.js";
export * from "./text.js";
export * from "./values.js";
