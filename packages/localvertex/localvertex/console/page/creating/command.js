// The command that starts the same run in a terminal; display name and labels exist in the API only.

const REGION = "us-central1";

/** Words that a shell reads as they are, and characters that it or a terminal would act on, even in quotes. */
const PLAIN = /^[\w@%+=:,./-]+$/;
const HIDDEN = /\p{C}|(?! )\p{Z}/u;

/**
 * @param {Overview} overview
 * @param {DraftState} draft
 */
export function commandOf({ path, parameters, input_artifacts, work_dir }, { parameters: texts, settings }) {
  // Without a text a parameter has its default, whatever the file has.
  const cleared = parameters.filter((each) => each.value !== null && each.default !== null && !texts.has(each.name));
  const words = ["python", "-m", "localvertex", "run", path.startsWith("-") ? `./${path}` : path];
  for (const [name, text] of [...texts, ...cleared.map((each) => [each.name, each.default])])
    words.push("--parameter", `${name}=${text?.startsWith("@") ? "@" : ""}${text}`);
  for (const name of input_artifacts) words.push("--input-artifact", `${name}=PATH`);
  if (settings.region !== REGION) words.push("--region", settings.region);
  if (work_dir) words.push("--work-dir", work_dir);
  if (settings.fail_fast) words.push("--fail-fast");
  if (!settings.use_cache) words.push("--no-cache");
  return words.map(quoted).join(" ");
}

/** @param {string} word */
function quoted(word) {
  if (PLAIN.test(word)) return word;
  if (!HIDDEN.test(word)) return `'${word.replaceAll("'", `'"'"'`)}'`;
  return `$'${Array.from(word, (each) => (HIDDEN.test(each) || "\\'".includes(each) ? octal(each) : each)).join("")}'`;
}

/** @param {string} text */
const octal = (text) =>
  Array.from(new TextEncoder().encode(text), (byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
