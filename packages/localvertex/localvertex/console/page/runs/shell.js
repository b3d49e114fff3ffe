// Words of a command as a shell takes them.

/** Control characters in pasted text act on the terminal, even in quotes; others hide or reorder text. */
const UNSAFE = /(?![\n\t])[\p{Cc}\p{Cf}]/u;
const ESCAPED = /[\\']|(?![\n\t])[\p{Cc}\p{Cf}]/gu;

/** @param {string} word */
export function quoted(word) {
  if (/^[\w@%+=:,./-]+$/.test(word)) return word;
  if (UNSAFE.test(word)) return `$'${word.replace(ESCAPED, octal)}'`;
  return `'${word.replaceAll("'", "'\\''")}'`;
}

/** @param {string} character */
const octal = (character) =>
  [...new TextEncoder().encode(character)].map((byte) => `\\${byte.toString(8).padStart(3, "0")}`).join("");
