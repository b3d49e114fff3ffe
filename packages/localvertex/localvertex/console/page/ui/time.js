// Times in the zone of the browser, and durations.
import { html, useEffect, useState } from "./html.js";

const DAY = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "numeric", minute: "2-digit" });
const LONG = new Intl.DateTimeFormat(undefined, { dateStyle: "full", timeStyle: "long" });
const YEAR = new Intl.DateTimeFormat(undefined, { dateStyle: "medium" });

/** A time in few characters; the whole one is its title. @param {{at: string | null | undefined}} props */
export function Time({ at }) {
  if (!at) return html`<span class="muted">–</span>`;
  const date = new Date(at);
  if (Number.isNaN(date.getTime())) return html`<span>${at}</span>`;
  const isThisYear = date.getFullYear() === new Date().getFullYear();
  return html`<time datetime=${at} title=${LONG.format(date)}>${(isThisYear ? DAY : YEAR).format(date)}</time>`;
}

/**
 * Seconds as `0.4 s`, `12 s`, `3 min 5 s`, `2 h 10 min` or `3 d 4 h`.
 * @param {number | null | undefined} seconds
 */
export function duration(seconds) {
  if (seconds === null || seconds === undefined) return "–";
  if (seconds < 9.95) return `${seconds.toFixed(1)} s`;
  const whole = Math.round(seconds);
  if (whole < 60) return `${whole} s`;
  const [large, small, units] =
    whole < 3600 ? [60, 1, ["min", "s"]] : whole < 86400 ? [3600, 60, ["h", "min"]] : [86400, 3600, ["d", "h"]];
  const rest = Math.floor((whole % large) / small);
  return `${Math.floor(whole / large)} ${units[0]}${rest ? ` ${rest} ${units[1]}` : ""}`;
}

/**
 * Seconds for the marks of an axis: `0.5 s`, `45 s`, `3:40`, `1:02:00`.
 * @param {number} seconds
 */
export function clock(seconds) {
  if (seconds < 60) return `${Number(seconds.toPrecision(3))} s`;
  const whole = Math.round(seconds);
  const two = (/** @type {number} */ value) => String(value).padStart(2, "0");
  const [minutes, rest] = [Math.floor(whole / 60), two(whole % 60)];
  return minutes < 60 ? `${minutes}:${rest}` : `${Math.floor(minutes / 60)}:${two(minutes % 60)}:${rest}`;
}

/**
 * How long something took, or how long it has been running, which grows each second.
 * @param {{seconds?: number | null, since?: string | null, idle?: number}} props - `since`: its start, if it is
 *   running; `idle`: seconds since then that do not count.
 */
export function Duration({ seconds, since, idle = 0 }) {
  const now = useNow(Boolean(since));
  const shown = since ? Math.max(0, Math.floor((now - Date.parse(since)) / 1000 - idle)) : seconds;
  return html`<span class="duration">${since ? duration(shown).replace(/\.\d/, "") : duration(shown)}</span>`;
}

/** The present time in milliseconds, new each second. @param {boolean} isRunning */
export function useNow(isRunning) {
  const [now, setNow] = useState(Date.now());
  useEffect(() => {
    if (!isRunning) return;
    const timer = setInterval(() => document.hidden || setNow(Date.now()), 1000);
    return () => clearInterval(timer);
  }, [isRunning]);
  return now;
}
