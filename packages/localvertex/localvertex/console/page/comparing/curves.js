// The training curves of runs over each other.

import { Charts } from "../jobs/curves.js";
import { html } from "../ui/ui.js";
import { Letter, letter } from "./letters.js";

/** Dashes and letters distinguish curves without their colours. */
const DASHES = [[], [8, 4], [2, 3], [12, 4, 2, 4]];

/** @param {CurvesProps} props */
export const Curves = ({ steps, curves }) =>
  curves
    .filter(({ series }) => series.some(Boolean))
    .map(({ task, series }) => {
      const title = steps.find((each) => each.path === task)?.title ?? task;
      const sources = series.flatMap((curve, run) => {
        const look = { colour: `--run-${run % 8}`, dash: DASHES[(run + (run >> 3)) % 4] };
        const mark = { mark: html`<${Letter} index=${run} />`, spoken: `run ${letter(run)} ` };
        return curve ? [{ curve, start: curve.points[0]?.[1] ?? 0, ...look, ...mark }] : [];
      });
      return html`<${Charts} key=${task} title=${html`Curves of <bdi>${title}</bdi>`} axis="step"
        sources=${sources} />`;
    });
