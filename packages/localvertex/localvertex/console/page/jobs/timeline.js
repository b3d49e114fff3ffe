// What a replica did and when: one lane, and the legend of its kinds.
import { clock, duration, html, percent, useMemo } from "../ui/ui.js";

/** @typedef {[string, number, number]} Segment - Kind, start and end in seconds from the start of the job. */
/** @typedef {[number, string]} Mark - Second, what happened. */

/** The kinds of segments in the order of the legend, and what they mean. */
const KINDS = {
  productive: "training steps whose result is kept",
  lost: "training steps that were repeated, and training that a failure interrupted",
  saving: "writing checkpoints",
  restoring: "reading a checkpoint",
  starting: "from the start of a process to its first step",
  evaluating: "on the validation split",
  waiting: "no process, or between two events",
  running: "a program that logs no training steps",
};

/** The width of a character in percent of a lane on a wide screen. */
const CHARACTER = 1.1;

/**
 * @param {object} props
 * @param {string} props.name - The replica.
 * @param {Segment[]} props.segments
 * @param {Mark[]} props.marks - Those of the whole job.
 * @param {number} props.total - Seconds that the lane covers.
 */
export function Lane({ name, segments, marks, total }) {
  const along = (/** @type {number} */ seconds) => `${((seconds / total) * 100).toFixed(3)}%`;
  const faults = marks.filter(([, text]) => text.startsWith("fault: ") && concerns(text, name));
  return useMemo(
    () => html`<svg class="lane" role="img" aria-label=${spoken(name, segments, faults)}>
      ${segments.map(
        ([kind, start, end]) => html`<rect class=${kind} x=${along(start)} width=${along(end - start)} height="100%">
          <title>${`${kind}, ${duration(end - start)} from ${duration(start)}`}</title>
        </rect>`,
      )}
      ${segments
        .filter(([kind, start, end]) => ((end - start) / total) * 100 > CHARACTER * (kind.length + 1))
        .map(([kind, start, end]) => html`<text class=${kind} x=${along((start + end) / 2)} y="16">${kind}</text>`)}
      ${faults.map(
        ([second, text]) => html`<g class="fault"><title>${`${duration(second)}: ${text}`}</title>
          <line x1=${along(second)} x2=${along(second)} y1="-4" y2="28" />
          <circle cx=${along(second)} cy="-4" r="4" />
        </g>`,
      )}
    </svg>`,
    [segments, faults.length, total],
  );
}

/** Whether a fault is one of this replica. @param {string} text @param {string} name */
const concerns = (text, name) => text.includes(` ${name} `) || text.includes(" all ");

/** The lane in words. @param {string} name @param {Segment[]} segments @param {Mark[]} faults */
function spoken(name, segments, faults) {
  const sums = Object.keys(KINDS).map((kind) => [kind, sum(segments, kind)]);
  const parts = sums.filter(([, seconds]) => seconds).map(([kind, seconds]) => `${kind} ${duration(Number(seconds))}`);
  return [`Timeline of ${name}: ${parts.join(", ") || "nothing yet"}`, ...faults.map(([, text]) => text)].join("; ");
}

/** @param {Segment[]} segments @param {string} kind */
const sum = (segments, kind) =>
  segments.reduce((seconds, [each, start, end]) => seconds + (each === kind ? end - start : 0), 0);

/** The seconds below the lanes. @param {{total: number}} props */
export function Axis({ total }) {
  const times = [0, 0.25, 0.5, 0.75, 1].map((part) => part * total);
  return html`<div class="axis" aria-hidden="true">${times.map((each) => html`<span>${clock(each)}</span>`)}</div>`;
}

/**
 * The kinds that occur, with the seconds of the primary replica, or of all trials of a tuning job.
 * @param {{timeline: Record<string, Segment[]>, seconds: Record<string, number>, total: number}} props
 */
export function Legend({ timeline, seconds, total }) {
  const used = new Set(Object.values(timeline).flatMap((segments) => segments.map(([kind]) => kind)));
  return html`<ul class="legend" aria-label="Time by kind">
    ${Object.entries(KINDS)
      .filter(([kind]) => used.has(kind) || seconds[kind])
      .map(
        ([kind, meaning]) => html`<li key=${kind} title=${meaning}>
          <svg class="swatch" aria-hidden="true"><rect class=${kind} width="100%" height="100%" /></svg>
          ${kind}${seconds[kind] ? html` <span class="muted">${share(seconds[kind], total)}</span>` : ""}
          <span class="hidden">${meaning}</span>
        </li>`,
      )}
  </ul>`;
}

/** @param {number} seconds @param {number} total */
const share = (seconds, total) => `${duration(seconds)}, ${percent(seconds / total)}`;
