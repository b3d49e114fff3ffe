// Numbers as text.

const NUMBER = new Intl.NumberFormat("en", { maximumSignificantDigits: 5 });
const COUNT = new Intl.NumberFormat("en");
const PERCENT = new Intl.NumberFormat("en", { style: "percent", maximumFractionDigits: 1 });

/** A figure with five digits. @param {number} value */
export function number(value) {
  const size = Math.abs(value);
  return size !== 0 && (size < 1e-4 || size >= 1e12) ? value.toExponential(3) : NUMBER.format(value);
}

/** A difference with its sign. @param {number} value */
export function signed(value) {
  const shown = number(Number(value.toPrecision(3)));
  return value > 0 ? `+${shown}` : shown.replace(/^-/, "−");
}

/** @param {number} value */
export const count = (value) => COUNT.format(value);

/** @param {number} share - 0 to 1. */
export const percent = (share) => PERCENT.format(share);
