// A graph with its folded groups, as the server draws them.
import { useEffect, useRef, useState } from "../ui/ui.js";
import { isGroup } from "./boxes.js";
import { placesIn } from "./keys.js";

/**
 * Keep a graph. Folding a group asks for another drawing, with all places anew.
 * @param {(closed: string) => Promise<any>} load - Requests the graph; `closed` is what the routes take.
 * @param {any[]} keys - What the graph depends on; another graph is loaded with nothing folded.
 * @returns {{graph: any, error: Error | null, toggle: (id: string) => void}}
 */
export function useGraph(load, keys) {
  const [graph, setGraph] = useState(/** @type {any} */ (null));
  const [error, setError] = useState(/** @type {Error | null} */ (null));
  const newest = useRef(0);
  const ask = (/** @type {string} */ closed) => {
    const number = ++newest.current;
    load(closed).then(
      (found) => {
        if (number !== newest.current) return;
        setGraph(found);
        setError(null);
      },
      (problem) => number === newest.current && setError(problem),
    );
  };
  useEffect(() => {
    setGraph(null);
    setError(null);
    ask("");
    return () => {
      newest.current++;
    };
  }, keys);
  const toggle = (/** @type {string} */ id) => {
    const closed = new Set();
    for (const { box } of placesIn(graph).values()) if (isGroup(box) && !box.is_open) closed.add(box.id);
    if (!closed.delete(id)) closed.add(id);
    ask([...closed].map(encodeURIComponent).join(","));
  };
  return { graph, error, toggle };
}
