// Requests to the server of this page.

/** The default project and region; local routes show the resources of all locations. */
const LOCATION = "/v1/projects/local-project/locations/us-central1/";

/** A request that the server refused, with its messages about single fields. */
export class ApiError extends Error {
  /**
   * @param {number} status - HTTP status; 0 when the server did not answer.
   * @param {string} message - The message of the server.
   * @param {Array<{field: string, message: string}>} details - One entry for each wrong field.
   */
  constructor(status, message, details = []) {
    super(message);
    this.status = status;
    this.details = details;
  }
}

/** @param {string} path - A collection or resource of Vertex AI in the default location. */
export const vertex = (path) => LOCATION + path;

/** @param {string} path */
export const get = (path) => request("GET", path);

/** @param {string} path @param {object} body */
export const post = (path, body = {}) => request("POST", path, body);

/** @param {string} path */
export const remove = (path) => request("DELETE", path);

/** Exchange the token for a cookie. @param {string} token */
export const openSession = (token) => request("POST", "/local/session", {}, { Authorization: `Bearer ${token}` });

/**
 * @param {string} method
 * @param {string} path
 * @param {object} [body]
 * @param {Record<string, string>} [headers]
 * @returns {Promise<any>}
 */
async function request(method, path, body, headers = {}) {
  /** @type {RequestInit & {headers: Record<string, string>}} */
  const options = { method, headers: { ...headers } };
  if (body !== undefined) {
    options.headers["Content-Type"] = "application/json";
    options.body = JSON.stringify(body);
  }
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new ApiError(0, "the server does not answer");
  }
  const content = await response.json().catch(() => ({}));
  if (!response.ok) {
    const { message = `HTTP status ${response.status}`, details = [] } = content.error ?? {};
    throw new ApiError(response.status, message, details);
  }
  return content;
}
