// The text of a log: its lines in blocks, so that only the last is drawn again when it grows, and how they are shown.
import { count, visible } from "../ui/ui.js";

/** Lines of one block, and lines of the window that are kept while the log grows. */
const BLOCK_LINES = 200;
const MOST_LINES = 5000;

/** Characters after which a block ends even within a line. */
const BLOCK_LENGTH = 65536;

/** @type {LogWindow} */
export const EMPTY = {
  file: "",
  files: [],
  blocks: [],
  end: 0,
  size: 0,
  most: MOST_LINES,
  isRead: false,
  inode: 0,
  round: 0,
};

/**
 * Return the window with the next event: it continues the log, or restarts when the log was replaced.
 * @param {LogWindow} log
 * @param {{file: string, files: string[], text: string, offset?: number, end?: number, size?: number,
 *   inode?: number}} event
 * @returns {LogWindow}
 */
export function added(log, event) {
  const { file, files, text, offset, end = 0, size = 0, inode = 0 } = event;
  if (offset === undefined) return { ...log, file, files, isRead: true };
  const isNext = file === log.file && offset === log.end && log.isRead;
  const blocks = isNext ? [...log.blocks] : [];
  const last = blocks.at(-1);
  const isOpen = last && last.text.length < BLOCK_LENGTH && (last.lines < BLOCK_LINES || !last.text.endsWith("\n"));
  if (isOpen) blocks.pop();
  blocks.push(...split(isOpen ? last.text + text : text, isOpen ? last.offset : offset));
  const most = isNext ? log.most : MOST_LINES;
  const round = log.isRead && (inode !== log.inode || size < log.size) ? log.round + 1 : log.round;
  return { file, files, blocks: newest(blocks, most), end, size, most, isRead: true, inode, round };
}

/**
 * Return a window of a piece elsewhere in the log, of which all lines are kept.
 * @param {LogWindow} log
 * @param {{text: string, offset: number, end: number, size: number}} piece
 * @returns {LogWindow}
 */
export function elsewhere(log, { text, offset, end, size }) {
  return { ...log, blocks: split(text, offset), end, size, most: Number.POSITIVE_INFINITY };
}

/** Return the block with a byte of the log. @param {LogWindow} log @param {number} offset */
export const blockWith = (log, offset) => log.blocks.find((block) => offset >= block.offset && offset < block.end);

/** Return the index in a block's text of the character at an offset. @param {Block} block @param {number} offset */
export const indexOf = (block, offset) =>
  new TextDecoder().decode(new TextEncoder().encode(block.text).subarray(0, offset - block.offset)).length;

/** Return the offset of the character at an index of a block's text. @param {Block} block @param {number} index */
export const offsetOf = (block, index) => block.offset + numBytes(block.text.slice(0, index));

/** What a line has that says why a program failed. */
const ERROR = /^.*\b(?:\w*Error|\w*Exception|error|fatal|Killed)\b/gm;

/** Return the offset of the last line that tells of an error; null without one. @param {LogWindow} log */
export function errorIn(log) {
  for (const block of log.blocks.toReversed()) {
    const found = [...block.text.matchAll(ERROR)].at(-1);
    if (found) return offsetOf(block, found.index);
  }
  return null;
}

/** @param {string} text */
const numBytes = (text) => new TextEncoder().encode(text).length;

/**
 * Return the window with an earlier piece before it, which stays when the log grows.
 * @param {LogWindow} log
 * @param {{text: string, offset: number}} piece
 * @returns {LogWindow}
 */
export function preceded(log, piece) {
  const blocks = split(piece.text, piece.offset);
  const most = log.most + numLines(blocks);
  return { ...log, blocks: [...blocks, ...log.blocks], most };
}

/** @param {Block[]} blocks */
const numLines = (blocks) => blocks.reduce((sum, each) => sum + each.lines, 0);

/** @param {Block[]} blocks @param {number} most */
function newest(blocks, most) {
  let left = numLines(blocks);
  let first = 0;
  while (first < blocks.length - 1 && left - blocks[first].lines >= most) left -= blocks[first++].lines;
  return first ? blocks.slice(first) : blocks;
}

/**
 * Cut a text into blocks.
 * @param {string} text
 * @param {number} offset
 * @returns {Block[]}
 */
function split(text, offset) {
  let next = offset;
  const blocks = [];
  let start = 0;
  while (start < text.length) {
    let end = start;
    let lines = 0;
    while (lines < BLOCK_LINES && end < text.length && end - start < BLOCK_LENGTH) {
      const newline = text.indexOf("\n", end);
      end =
        newline < 0 || newline + 1 - start > BLOCK_LENGTH ? Math.min(text.length, start + BLOCK_LENGTH) : newline + 1;
      lines += 1;
    }
    // A character of two units is not cut.
    const part = text.slice(start, /[\ud800-\udbff]/.test(text[end - 1]) ? end + 1 : end);
    blocks.push({ offset: next, end: next + numBytes(part), text: part, lines });
    next += numBytes(part);
    start += part.length;
  }
  return blocks;
}

const MOST_CHARACTERS = 4000;

// biome-ignore lint/suspicious/noControlCharactersInRegex: terminals write these.
const ESCAPES = /\u001b\[[0-?]*[ -/]*[@-~]|\u001b\][^\u0007\u001b]*(\u0007|\u001b\\)|\u001b[@-_]/g;

/** What the server sends for a byte that is not UTF-8. */
const INVALID = "\u001a";

/**
 * Return a text as it is shown: without escape sequences, progress bars in their last state, long lines cut.
 * @param {string} text
 * @param {boolean} [isWhole] - Long lines are not cut.
 */
export const shown = (text, isWhole = false) =>
  text
    .split("\n")
    .map((line) => {
      const found = plain(line.slice(startOf(line)).replace(/\r+$/, ""));
      const left = isWhole ? 0 : found.length - MOST_CHARACTERS;
      return left > 0 ? `${found.slice(0, MOST_CHARACTERS)} … ${count(left)} more characters` : found;
    })
    .join("\n");

/** Where the last state of a progress bar begins. @param {string} line */
function startOf(line) {
  let end = line.length;
  while (line[end - 1] === "\r") end -= 1;
  return end ? line.lastIndexOf("\r", end - 1) + 1 : 0;
}

/** Return the text of a line without escape sequences. @param {string} text */
export const plain = (text) => visible(text.replace(ESCAPES, "").replaceAll(INVALID, "\ufffd"));
