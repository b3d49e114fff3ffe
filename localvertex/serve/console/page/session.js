// The session: the token of the printed address becomes a cookie, and leaves the address bar.
import { openSession } from "./api.js";

const START = "#token=";

/**
 * Open the session when the address has a token.
 * @returns {Promise<string>} What is wrong, empty if nothing is.
 */
export async function beginSession() {
  if (!location.hash.startsWith(START)) return "";
  const token = location.hash.slice(START.length);
  history.replaceState(null, "", location.pathname);
  try {
    await openSession(token);
  } catch (error) {
    return error.status === 403
      ? "The token in the address is not the one of this server. Open the address that the server printed."
      : `The session could not be opened: ${error.message}.`;
  }
  return "";
}
