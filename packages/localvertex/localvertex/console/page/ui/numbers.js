// Numbers as text: figures, differences, counts, shares and sizes.

const FIGURE = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const COUNT = new Intl.NumberFormat("en");
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

/** A value of a record: whole numbers with all digits, others with five, anything else as text. @param {any} value */
export function figure(value) {
  if (value === null || value === undefined) return "–";
  if (typeof value !== "number") return String(value);
  if (Number.isSafeInteger(value)) return COUNT.format(value);
  const size = Math.abs(value);
  return size < 1e-4 || size >= 1e12 ? value.toExponential(3) : FIGURE.format(value);
}

/** A difference with its sign. @param {number} value */
export function signed(value) {
  const shown = figure(Number(value.toPrecision(3)));
  return value > 0 ? `+${shown}` : shown.replace(/^-/, "−");
}

/** What changed between two values, if both are numbers. @param {any} before @param {any} now */
export const change = (before, now) =>
  typeof before === "number" && typeof now === "number" ? signed(now - before) : "–";

/** @param {number} value */
export const count = (value) => COUNT.format(value);

/** @param {number} share - 0 to 1. */
export const percent = (share) => PERCENT.format(share);

/** Bytes in the largest unit with a digit before the point. @param {number} size */
export function bytes(size) {
  if (size < 1000) return `${size} B`;
  const power = Math.min(Math.floor(Math.log10(size) / 3), 4);
  return `${(size / 1000 ** power).toPrecision(3)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}
