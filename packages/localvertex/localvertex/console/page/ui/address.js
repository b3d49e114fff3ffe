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

/** @param {string} address - What `link` returns. */
export const go = (address) => {
  location.hash = address;
};

/** Show another view in place of the present one, which is then not in the history. @param {string} address */
export const replace = (address) => location.replace(address);
