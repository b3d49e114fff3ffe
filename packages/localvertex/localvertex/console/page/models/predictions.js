// The predictions of a model: probabilities of classes as bars with figures, everything else as JSON.
import { Code, count, duration, html } from "../ui/ui.js";

const NUM_SHOWN = 5;

const MAX_PREDICTIONS = 50;
const MAX_CHARACTERS = 20_000;

/** @param {{answer: any}} props - The answer of a trial. */
export function Predictions({ answer }) {
  const more = answer.predictions.length - MAX_PREDICTIONS;
  return html`<div class="predictions">
    ${answer.predictions.slice(0, MAX_PREDICTIONS).map((/** @type {any} */ each, /** @type {number} */ index) => {
      const classes = classesOf(each, answer.class_names);
      if (classes) return html`<${Bars} key=${index} classes=${classes} />`;
      const text = JSON.stringify(each, null, 2);
      const rest = text.length > MAX_CHARACTERS ? `… (${count(text.length)} characters)` : "";
      return html`<${Code} key=${index} text=${text.slice(0, MAX_CHARACTERS) + rest} />`;
    })}
    ${more > 0 && html`<p class="small muted">and ${count(more)} more predictions</p>`}
    <p class="small muted">
      Answered by ${answer.endpoint || "its container"}, in ${duration(answer.seconds)}</p>
  </div>`;
}

/** @param {{classes: {name: string, share: number}[]}} props */
function Bars({ classes }) {
  const sorted = classes.toSorted((one, other) => other.share - one.share);
  const more = sorted.length - NUM_SHOWN;
  return html`<ol class="bars">
      ${sorted.slice(0, NUM_SHOWN).map(
        ({ name, share }, index) => html`<li key=${index}>
          <span class="name">${name}</span>
          <span class="share" aria-hidden="true"><span style=${{ width: `${100 * Math.min(1, share)}%` }}></span></span>
          <span class="number">${(100 * share).toFixed(2)}%</span>
        </li>`,
      )}
    </ol>
    ${more > 0 && html`<p class="small muted">and ${count(more)} classes with less</p>`}`;
}

/**
 * Return classes with their probabilities, null when a prediction has another form: nothing is guessed.
 * @param {any} prediction - Of this project's models, or of Vertex AI's image classification.
 * @param {string[]} names - The classes of the model; empty if they are not known.
 */
function classesOf(prediction, names) {
  // Up to rounding.
  const isShare = (/** @type {any} */ value) => typeof value === "number" && value >= 0 && value <= 1.001;
  const shares = prediction?.probabilities ?? prediction?.confidences;
  if (!Array.isArray(shares) || !shares.length || !shares.every(isShare)) return null;
  const given = prediction.labels ?? prediction.displayNames;
  const known = Array.isArray(given) ? given : names;
  const isKnown = known.length === shares.length;
  return shares.map((share, index) => ({ name: isKnown ? String(known[index]) : `output ${index}`, share }));
}
