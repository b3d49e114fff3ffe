// A cron expression as a sentence, with the next times at which it fires; both come from the server.

import { Field } from "../creating/field.js";
import { usePost } from "../server/load.js";
import { figure, html, Select, useMemo } from "../ui/ui.js";

const TYPING_MS = 200;

/** @typedef {{sentence: string, zone: string, next: string[], time_factor?: number}} Meaning */

/** Offered beside the field. */
const EXAMPLES = [
  ["Every hour", "0 * * * *"],
  ["Every day at 3:00", "0 3 * * *"],
  ["Mondays at 3:00", "0 3 * * 1"],
];

/**
 * What a cron expression means, a moment after its last change. The last answer stays until the new one is here.
 * @param {string} cron - With its time zone: `TZ=Europe/Berlin 0 3 * * 1`.
 * @returns {{meaning: Meaning | null, error: string, isCurrent: boolean}} `isCurrent`: this is about the present cron.
 */
export function useCron(cron) {
  const asked = useMemo(() => ({ cron }), [cron]);
  const { answer, error, isCurrent } = usePost("/local/cron", asked, TYPING_MS);
  const problem = error?.message ?? answer?.error ?? "";
  return { meaning: problem ? null : answer, error: problem, isCurrent };
}

/**
 * The sentence and the next times of a cron.
 * @param {{meaning: Meaning, title?: string}} props - `title` is above the times.
 */
export function CronMeaning({ meaning: { sentence, zone, next }, title = "Next times" }) {
  return html`<div class="cron">
    <p class="sentence">${sentence || "No description"}</p>
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
    return new Intl.DateTimeFormat(undefined, { ...PARTS, year, timeZone: zone, timeZoneName: "short" }).format(date);
  } catch {
    return at.replace("T", " ");
  }
}

/**
 * The fields of a cron and its zone.
 * @param {{expression: string, zone: string, onExpression: (text: string) => void, onZone: (zone: string) => void,
 *   cron: ReturnType<typeof useCron>}} props
 */
export function CronFields({ expression, zone, onExpression, onZone, cron }) {
  const examples = html`<p class="examples">
    ${EXAMPLES.map(([name, each]) => {
      const choose = () => onExpression(each);
      return html`<button key=${each} type="button" class="quiet" onClick=${choose}>${name}</button>`;
    })}
  </p>`;
  const meaning = cron.meaning && html`<${CronMeaning} meaning=${cron.meaning} />`;
  const after = html`${examples}<div aria-live="polite">${meaning}</div>`;
  const type = (/** @type {any} */ event) => onExpression(event.target.value);
  return html`
    <${Field} id="cron" name="Cron" error=${cron.error} after=${after}
      hint="Five fields: minute, hour, day of the month, month, day of the week.">
      ${(/** @type {object} */ aria) => html`<input ...${aria} class="mono" value=${expression} spellcheck=${false}
        autocomplete="off" onInput=${type} />`}
    <//>
    <${Field} id="zone" name="Time zone">
      ${(/** @type {object} */ aria) =>
        html`<${Select} ...${aria} value=${zone} choices=${zones(zone)} onChoose=${onZone} />`}
    <//>`;
}

/** The zones that can be chosen. @param {string} chosen */
const zones = (chosen) => [...new Set([chosen, "UTC", ...Intl.supportedValuesOf("timeZone")])];
