// What the names of metrics say: which come first, and whether a larger or a smaller value is better.

const LARGER = new Set("accuracy precision recall f1 auc auroc auprc map iou dice goodput".split(" "));
const SMALLER = new Set("loss error mae mse rmse perplexity latency".split(" "));

/** Metrics that come first where there is no room for all. */
const FIRST =
  "accuracy baseline_accuracy auPrc auRoc f1Score macro_f1 balanced_accuracy logLoss loss rootMeanSquaredError".split(
    " ",
  );

/** 1 if a larger value is better, -1 if a smaller one is, 0 if the name does not show it. @param {string} name */
export function direction(name) {
  const separated = name.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();
  const words = /** @type {string[]} */ (separated.match(/[a-z0-9]+/g) ?? []);
  if (words.includes("baseline")) return 0;
  return Number(words.some((each) => LARGER.has(each))) - Number(words.some((each) => SMALLER.has(each)));
}

/** The names of metrics, the usual ones first. @param {Record<string, any>[]} all */
export function metricNames(all) {
  const names = [...new Set(all.flatMap((metrics) => Object.keys(metrics)))];
  const rank = (/** @type {string} */ name) => (FIRST.includes(name) ? FIRST.indexOf(name) : FIRST.length);
  return names.sort((one, other) => rank(one) - rank(other));
}
