// Preact with htm: what all parts and views import.
import htm from "./vendor/htm.js";
import { createElement } from "./vendor/preact.js";

export { useCallback, useEffect, useMemo, useRef, useState } from "./vendor/hooks.js";
export { Fragment, render } from "./vendor/preact.js";

export const html = htm.bind(createElement);
