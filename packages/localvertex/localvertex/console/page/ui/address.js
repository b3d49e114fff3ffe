// The fragments of views, and the way from one to another.

/**
 * Return the address of a view: `link(["runs", id, task], { tab: "log" })`. Empty values of the query are left out.
 * @param {string[]} parts
 * @param {Record<string, string | null | undefined>} [query]
 */
export function link(parts, query = {}) {
  const given = Object.entries(query).filter(([, value]) => value);
  const search = new URLSearchParams(/** @type {[string, string][]} */ (given)).toString();
  return `#/${parts.map(encodeURIComponent).join("/")}${search && `?${search}`}`;
}

/**
 * Show another view.
 * @param {string} address - What `link` returns.
 * @param {{replace?: boolean}} [options] - With `replace` the present view is not in the history.
 */
export function go(address, { replace = false } = {}) {
  if (replace) location.replace(address);
  else location.hash = address;
}
