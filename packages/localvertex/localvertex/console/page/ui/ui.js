// Everything in this folder that views use.
export * from "./dialog.js";
export * from "./html.js";
export * from "./numbers.js";
export * from "./page.js";
export * from "./problem.js";
export * from "./select.js";
export * from "./state.js";
export * from "./table.js";
export * from "./tabs.js";
export * from "./time.js";
export * from "./values.js";
