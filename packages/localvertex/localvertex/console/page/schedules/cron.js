// What all views show of schedules: when a cron fires next, which comes from the server.

import { figure, html } from "../ui/ui.js";

/** The number of a schedule. @param {{name: string}} schedule */
export const idOf = ({ name }) => name.slice(name.lastIndexOf("/") + 1);

/** The next times of a cron. @param {CronMeaningProps} props */
export function CronMeaning({ meaning: { zone, next }, title = "Next times" }) {
  return html`<div class="cron">
    <p class="muted">${zone}</p>
    ${
      next.length > 0 &&
      html`<p class="muted small">${title}</p>
        <ol>${next.map((at) => html`<li key=${at}><time datetime=${at}>${inZone(at, zone)}</time></li>`)}</ol>`
    }
  </div>`;
}

/** Whose times these are, if the clock of the schedules is not the real one. @param {{factor?: number}} props */
export function FastClock({ factor = 1 }) {
  if (factor === 1) return null;
  return html`<p class="muted clock">
    The times of schedules are on a clock that runs ${figure(factor)} times as fast (<code>--time-factor</code>).
  </p>`;
}

/** @type {Intl.DateTimeFormatOptions} */
const PARTS = {
  weekday: "short",
  day: "numeric",
  month: "short",
  hour: "2-digit",
  minute: "2-digit",
  hourCycle: "h23",
};

/** A time as clocks in a zone show it. @param {string} at @param {string} zone */
export function inZone(at, zone) {
  const date = new Date(at);
  const year = date.getFullYear() === new Date().getFullYear() ? undefined : "numeric";
  try {
    return new Intl.DateTimeFormat("en-GB", { ...PARTS, year, timeZone: zone, timeZoneName: "short" }).format(date);
  } catch {
    return at.replace("T", " ");
  }
}
