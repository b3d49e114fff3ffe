// Numbers, sizes, times and durations as text.
import { html, useEffect, useState } from "./html.js";
import { isFinal } from "./state.js";

/** Shown in place of a value that does not exist. */
const MISSING = "–";
export const NONE = html`<span class="muted">${MISSING}</span>`;

/**
 * A value in its format, if it exists.
 * @template T @param {T | null | undefined} value @param {(value: T) => any} format
 */
export const formatted = (value, format = String) => (value === null || value === undefined ? MISSING : format(value));

/** A number with commas. Loading Intl takes longer than drawing a list. @param {number} value */
export const count = (value) => String(value).replace(/\B(?<!\.\d*)(?=(\d{3})+(?!\d))/g, ",");

/**
 * A value of a record: whole numbers with all digits, others with five, anything else as text.
 * @param {unknown} value
 */
export function figure(value) {
  if (typeof value !== "number") return formatted(value);
  if (Number.isSafeInteger(value)) return count(value);
  const size = Math.abs(value);
  return size < 1e-4 || size >= 1e12 ? value.toExponential(3) : count(Number(value.toPrecision(5)));
}

/** A difference with its sign. @param {number} value */
export function signed(value) {
  const shown = figure(Number(value.toPrecision(3)));
  return value > 0 ? `+${shown}` : shown.replace(/^-/, "−");
}

/** What changed between two values, if both are numbers. @param {unknown} before @param {unknown} now */
export const change = (before, now) =>
  typeof before === "number" && typeof now === "number" ? signed(now - before) : MISSING;

/** A number with its noun: `1 step`, `2 steps`. @param {number} number @param {string} noun */
export const plural = (number, noun) => `${count(number)} ${noun}${number === 1 ? "" : "s"}`;

/** @param {number} share - 0 to 1. */
export const percent = (share) => `${count(Number((share * 100).toFixed(1)))}%`;

/** Bytes in the largest unit with a digit before the point. @param {number} size */
export function bytes(size) {
  if (size < 1000) return `${size} B`;
  const power = Math.min(Math.floor(Math.log10(size) / 3), 4);
  return `${(size / 1000 ** power).toPrecision(3)} ${["B", "kB", "MB", "GB", "TB"][power]}`;
}

/** A time in few characters; the whole one is its title. @param {{at: string | null | undefined}} props */
export function Time({ at }) {
  if (!at) return NONE;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return html`<span>${at}</span>`;
  const [, month, day, year, time] = String(date).split(" ");
  const end = Number(year) === new Date().getFullYear() ? time.slice(0, 5) : year;
  return html`<time datetime=${at} title=${date}>${`${Number(day)} ${month} ${end}`}</time>`;
}

/** Seconds as `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min` or `3 d 4 h`. @param {number | null | undefined} seconds */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return MISSING;
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const [large, small, units] =
    whole < 3600 ? [60, 1, ["min", "s"]] : whole < 86400 ? [3600, 60, ["h", "min"]] : [86400, 3600, ["d", "h"]];
  const rest = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)} ${units[0]}${rest ? ` ${rest} ${units[1]}` : ""}`;
}

/** Seconds for the marks of an axis: `0.5 s`, `45 s`, `3:40`, `1:02:00`. @param {number} seconds */
export function clock(seconds) {
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const whole = Math.round(seconds);
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const [minutes, rest] = [Math.floor(whole / 60), two(whole % 60)];
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${rest}`;
}

/** How long something has been running, new each second. @param {ElapsedProps} props */
export function Elapsed({ since, idle = 0 }) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    const timer = setInterval(() => document.hidden || setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, []);
  return duration(Math.max(0, Math.floor((now - Date.parse(since)) / 1000 - idle))).replace(/\.\d/, "");
}

/** How long a run, step or job took, or how long it has been running. @param {{of: any}} props */
export function Duration({ of: { state, start_time, end_time, seconds, idle_seconds } }) {
  if (!start_time) return NONE;
  if (isFinal(state) || end_time) return duration(seconds);
  return html`<${Elapsed} since=${start_time} idle=${idle_seconds} />`;
}
