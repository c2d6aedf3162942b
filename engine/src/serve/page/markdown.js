// Markdown as elements. What a model says becomes text nodes and nothing else: no part of it is ever parsed as markup, and
// the only attribute that it sets is the address of a link to the web or to a mailbox.

const FENCE = /^( {0,3})(`{3,}|~{3,})\s*([^`]*)$/;
const HEADING = /^ {0,3}(#{1,6})(?:\s+(.*?))?\s*#*\s*$/;
const RULE = /^ {0,3}([-*_])(?:\s*\1){2,}\s*$/;
const QUOTE = /^ {0,3}> ?(.*)$/;
const ITEM = /^(\s*)([-*+]|\d{1,9}[.)])(\s+|$)(.*)$/;
const DIVIDER = /^ {0,3}\|?\s*:?-+:?\s*(\|\s*:?-+:?\s*)*\|?\s*$/;
/** Quotes and lists within each other; deeper ones are plain text. */
const DEEPEST = 12;

// Spans are bounded, so that text with many openings and no closing takes no longer than other text.
const SPAN = new RegExp([
  String.raw`\\([!-/:-@[-\x60{-~])`,
  String.raw`(?<!\x60)(\x60+)(?!\x60)([\s\S]{1,2000}?)(?<!\x60)\2(?!\x60)`,
  String.raw`\*\*(?=\S)([\s\S]{1,2000}?)(?<=\S)\*\*(?!\*)`,
  String.raw`(?<![\p{L}\p{N}_])__(?=\S)([\s\S]{1,2000}?)(?<=\S)__(?![\p{L}\p{N}_])`,
  String.raw`~~(?=\S)([\s\S]{1,2000}?)(?<=\S)~~`,
  String.raw`\*(?![\s*])([^*]{1,2000}?)(?<=\S)\*(?!\*)`,
  String.raw`(?<![\p{L}\p{N}_])_(?![\s_])([^_]{1,2000}?)(?<=\S)_(?![\p{L}\p{N}_])`,
  String.raw`(!?)\[([^[\]]{0,1000})\]\(\s*<?([^()\s<>]{1,2000}(?:\([^()\s]{0,200}\)[^()\s<>]{0,500})?)>?(?:\s+"[^"]{0,500}")?\s*\)`,
  String.raw`(https?:\/\/[^\s<>"'\x60]{1,2000})`,
].join("|"), "gu");

/** The blocks of lines. */
export function blocksOf(lines, depth = 0) {
  const blocks = [];
  let at = 0;
  while (at < lines.length) {
    const read = readers.map(reader => reader(lines, at, depth)).find(found => found);
    if (read) {
      blocks.push(...[read.block].filter(block => block));
      at = read.next;
      continue;
    }
    const begin = at++;
    while (at < lines.length && !begins(lines, at, depth)) at++;
    blocks.push({ kind: "p", text: lines.slice(begin, at).join("\n").trim() });
  }
  return blocks;
}

const readers = [readBlank, readCode, readHeading, readRule, readQuote, readList, readTable];

function begins(lines, at, depth) {
  const line = lines[at];
  const item = ITEM.exec(line);
  // Only a list that begins at one, and with something in it, ends a paragraph.
  if (item && depth < DEEPEST) return item[4] !== "" && (!/\d/.test(item[2]) || /^1[.)]$/.test(item[2]));
  const quotes = depth < DEEPEST && QUOTE.test(line);
  return !line.trim() || FENCE.test(line) || HEADING.test(line) || RULE.test(line) || quotes || isTable(lines, at);
}

function readBlank(lines, at) {
  return lines[at].trim() ? null : { next: at + 1 };
}

function readCode(lines, at) {
  const open = FENCE.exec(lines[at]);
  if (!open) return null;
  const closes = line => {
    const bare = line.trim();
    return bare.length >= open[2].length && bare === open[2][0].repeat(bare.length);
  };
  let end = at + 1;
  while (end < lines.length && !closes(lines[end])) end++;
  const indent = new RegExp(`^ {0,${open[1].length}}`);
  const text = lines.slice(at + 1, end).map(line => line.replace(indent, "")).join("\n");
  return { block: { kind: "code", language: open[3].trim().split(/\s/)[0], text }, next: end + 1 };
}

function readHeading(lines, at) {
  const found = HEADING.exec(lines[at]);
  return found && { block: { kind: `h${found[1].length}`, text: found[2] ?? "" }, next: at + 1 };
}

function readRule(lines, at) {
  return RULE.test(lines[at]) ? { block: { kind: "hr" }, next: at + 1 } : null;
}

function readQuote(lines, at, depth) {
  if (depth >= DEEPEST || !QUOTE.test(lines[at])) return null;
  let end = at;
  while (end < lines.length && QUOTE.test(lines[end])) end++;
  const inner = lines.slice(at, end).map(line => QUOTE.exec(line)[1]);
  return { block: { kind: "blockquote", blocks: blocksOf(inner, depth + 1) }, next: end };
}

function readList(lines, at, depth) {
  const first = ITEM.exec(lines[at]);
  if (!first || depth >= DEEPEST) return null;
  const isOrdered = marker => /\d/.test(marker);
  const [base, ordered] = [first[1].length, isOrdered(first[2])];
  const items = [];
  while (at < lines.length) {
    const line = lines[at];
    const item = ITEM.exec(line);
    const indent = line.length - line.trimStart().length;
    if (item && indent <= base + 1 && isOrdered(item[2]) === ordered && !RULE.test(line)) {
      items.push([item[4]]);
    } else if (!line.trim()) {
      const next = lines.slice(at + 1, at + 3).find(line => line.trim());
      const goesOn = next && (next.search(/\S/) > base + 1 || isOrdered(ITEM.exec(next)?.[2] ?? "") === ordered && ITEM.test(next));
      if (!goesOn) break;
      items.at(-1).push("");
    } else if (indent > base + 1) {
      items.at(-1).push(line.slice(Math.min(indent, base + first[2].length + 1)));
    } else if (items.at(-1).at(-1) === "" || begins(lines, at, depth)) {
      break;
    } else {
      items.at(-1).push(line);
    }
    at++;
  }
  const start = ordered ? parseInt(first[2], 10) : 1;
  const blocks = items.map(item => blocksOf(item, depth + 1));
  return { block: { kind: ordered ? "ol" : "ul", start, items: blocks }, next: at };
}

function isTable(lines, at) {
  const next = lines[at + 1] ?? "";
  return lines[at].includes("|") && next.includes("-") && next.includes("|") && DIVIDER.test(next);
}

function readTable(lines, at) {
  if (!isTable(lines, at)) return null;
  const cells = line => line.trim().replace(/^\||(?<!\\)\|$/g, "").split(/(?<!\\)\|/).map(cell => cell.trim().replaceAll("\\|", "|"));
  let end = at + 2;
  while (end < lines.length && lines[end].includes("|")) end++;
  return { block: { kind: "table", head: cells(lines[at]), rows: lines.slice(at + 2, end).map(cells) }, next: end };
}

/** Text with emphasis, code and links, as nodes. */
export function inline(text, depth = 0) {
  const nodes = [];
  let done = 0;
  for (const found of text.matchAll(SPAN)) {
    const [whole, escaped, , code, strong, strong2, struck, em, em2, bang, label, address, bare] = found;
    const within = inner => depth < DEEPEST ? inline(inner, depth + 1) : [inner];
    let node;
    if (escaped !== undefined) node = escaped;
    else if (code !== undefined) node = element("code", code.replace(/^ (.*\S.*) $/s, "$1"));
    else if (strong ?? strong2) node = element("strong", ...within(strong ?? strong2));
    else if (struck) node = element("s", ...within(struck));
    else if (em ?? em2) node = element("em", ...within(em ?? em2));
    else if (bare) node = link(bare.replace(/[.,;:!?)\]]+$/, ""), null);
    // A picture from elsewhere is not fetched.
    else node = link(address, bang ? [label || address] : within(label)) ?? whole;
    nodes.push(text.slice(done, found.index), node ?? whole);
    done = found.index + whole.length;
    if (bare && node) nodes.push(whole.slice(node.textContent.length));
  }
  nodes.push(text.slice(done));
  return nodes.filter(node => node !== "");
}

/** A link to the web or a mailbox; nothing for any other address. */
function link(address, nodes) {
  const url = parsed(address);
  if (!url || !["http:", "https:", "mailto:"].includes(url.protocol)) return null;
  const anchor = element("a", ...(nodes ?? [address]));
  anchor.href = url.href;
  anchor.target = "_blank";
  anchor.rel = "noopener noreferrer nofollow";
  return anchor;
}

function parsed(address) {
  try {
    return new URL(address);
  } catch {
    return null;
  }
}

function element(name, ...nodes) {
  const made = document.createElement(name);
  made.append(...nodes);
  return made;
}

function elementOf(block) {
  switch (block.kind) {
    case "code": return codeOf(block);
    case "hr": return element("hr");
    case "blockquote": return element("blockquote", ...block.blocks.map(elementOf));
    case "ul":
    case "ol": {
      // An item of one paragraph is written close to its neighbours.
      const nodes = blocks => blocks.flatMap((inner, i) => inner.kind === "p" && i === 0 ? inline(inner.text) : [elementOf(inner)]);
      const list = element(block.kind, ...block.items.map(item => element("li", ...nodes(item))));
      if (block.start !== 1) list.start = block.start;
      return list;
    }
    case "table": {
      const row = (cells, name) => element("tr", ...cells.map(cell => element(name, ...inline(cell))));
      const body = element("tbody", ...block.rows.map(cells => row(cells, "td")));
      const holder = element("div", element("table", element("thead", row(block.head, "th")), body));
      holder.className = "table";
      return holder;
    }
    default: return element(block.kind, ...inline(block.text));
  }
}

function codeOf({ language, text }) {
  const button = element("button", "Copy");
  button.type = "button";
  button.className = "copy-code quiet";
  const bar = element("div", element("span", language), button);
  bar.className = "row";
  const holder = element("div", bar, element("pre", element("code", text)));
  holder.className = "code";
  return holder;
}

/** Shows a text that grows: blocks that stay the same stay in place, and with them what the reader has selected. */
export class Markdown {
  #holder;
  #shown = [];

  constructor(holder) {
    this.#holder = holder;
  }

  show(text) {
    const blocks = blocksOf(text.split(/\r?\n/));
    const keys = blocks.map(block => JSON.stringify(block));
    let same = 0;
    while (same < keys.length && keys[same] === this.#shown[same]) same++;
    while (this.#holder.childNodes.length > same) this.#holder.lastChild.remove();
    this.#holder.append(...blocks.slice(same).map(elementOf));
    this.#shown = keys;
  }
}
