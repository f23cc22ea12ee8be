// Markdown to nodes of the document. What a model writes is hostile: nothing here makes HTML of a text, so that what
// looks like a tag stays a text; links lead only where SCHEMES says; and time grows with the length of the text,
// whatever it is.

const SCHEMES = ["http:", "https:", "mailto:"];
const DEEPEST = 10; // lists in lists, bold in links; what is deeper stays as it is written
const LONGEST_LINK = 2000;

function element(name, text, className) {
  const node = document.createElement(name);
  if (text !== undefined) node.textContent = text;
  if (className) node.className = className;
  return node;
}

// ---- inside a line ----

// The address, or null where a click could do anything but leave for another page.
export function safeAddress(text) {
  try {
    const url = new URL(text);
    return SCHEMES.includes(url.protocol) ? url.href : null;
  } catch {
    return null;
  }
}

function link(address, children) {
  const node = element("a");
  node.href = address;
  node.target = "_blank";
  node.rel = "noopener noreferrer";
  node.title = address;
  node.append(...children);
  return node;
}

// For each [ the place of its ].
function matchBrackets(text) {
  const open = [], close = new Map();
  for (let i = 0; i < text.length; i++) {
    if (text[i] === "\\") i++;
    else if (text[i] === "[") open.push(i);
    else if (text[i] === "]" && open.length) close.set(open.pop(), i);
  }
  return close;
}

// Behind [words]: the place after (address "title"), and the address; null where it is not so.
function readTarget(text, at) {
  if (text[at] !== "(") return null;
  let depth = 0;
  const last = Math.min(text.length, at + LONGEST_LINK);
  for (let i = at; i < last && text[i] !== "\n"; i++) {
    if (text[i] === "(") depth++;
    if (text[i] !== ")" || --depth > 0) continue;
    const match = /^\s*<?([^\s<>]*)>?(?:\s+(?:"[^"]*"|'[^']*'))?\s*$/.exec(text.slice(at + 1, i));
    return match && { end: i + 1, address: match[1] };
  }
  return null;
}

const isWord = (c) => c !== undefined && /[\p{L}\p{N}]/u.test(c);
const isSpace = (c) => c === undefined || /\s/.test(c);

// Where emphasis that |mark| opened before |from| is closed, or -1. A run of the mark's sign is taken as a whole: one sign
// closes what one opened, two bold, three both.
function findClose(text, mark, from) {
  const sign = mark[0];
  let at = from + 1;
  while (text[at] === sign) at++; // what opens does not close
  while ((at = text.indexOf(mark, at)) >= 0) {
    let end = at;
    while (text[end] === sign) end++;
    const isEscaped = text[at - 1] === "\\", fits = mark.length === 2 || end - at === 1 || end - at === 3;
    if (fits && !isEscaped && !isSpace(text[at - 1]) && !(sign === "_" && isWord(text[end]))) return end - mark.length;
    at = isEscaped ? at + 1 : end;
  }
  return -1;
}

const MARKS = [["**", "strong"], ["__", "strong"], ["~~", "del"], ["*", "em"], ["_", "em"]];

// Nodes for |text|, a paragraph or less.
export function inline(text, depth = 0) {
  if (depth > DEEPEST) return [document.createTextNode(text)];
  const nodes = [], brackets = matchBrackets(text);
  const missing = new Set(); // marks and runs of ` that nothing closes further on
  let plain = "", at = 0;
  const put = (node, end) => {
    if (plain) nodes.push(document.createTextNode(plain));
    plain = "";
    nodes.push(node);
    at = end;
  };
  const rules = {
    "\\"() {
      if (text[at + 1] === "\n") return put(element("br"), at + 2), true;
      if (!/[!-/:-@[-`{-~]/.test(text[at + 1] ?? "")) return false;
      plain += text[at + 1];
      at += 2;
      return true;
    },
    "`"() {
      const run = /^`+/.exec(text.slice(at, at + 100))[0];
      let end = missing.has(run) ? -1 : text.indexOf(run, at + run.length);
      while (end >= 0 && (text[end + run.length] === "`" || text[end - 1] === "`")) {
        while (text[end] === "`") end++;
        end = text.indexOf(run, end);
      }
      if (end < 0) {
        missing.add(run);
        plain += run;
        at += run.length;
        return true;
      }
      const code = text.slice(at + run.length, end).replaceAll("\n", " ");
      const padded = code.startsWith(" ") && code.endsWith(" ") && code.trim() !== "";
      put(element("code", padded ? code.slice(1, -1) : code), end + run.length);
      return true;
    },
    "["() {
      const close = brackets.get(at), target = close && readTarget(text, close + 1);
      if (!target) return false;
      const words = text.slice(at + 1, close), address = safeAddress(target.address);
      const children = inline(words || target.address, depth + 1);
      if (address) {
        put(link(address, children), target.end);
      } else { // says where it would have led
        const dead = element("span");
        dead.append(...children, ` (${target.address})`);
        put(dead, target.end);
      }
      return true;
    },
    "!"() { // a picture is a link to it: nothing is loaded from outside
      if (text[at + 1] !== "[" || !brackets.has(at + 1) || !readTarget(text, brackets.get(at + 1) + 1)) return false;
      at++;
      return rules["["]();
    },
    "<"() {
      const match = /^<([a-z]+:[^\s<>]+)>/i.exec(text.slice(at, at + LONGEST_LINK));
      const address = match && safeAddress(match[1]);
      if (!address) return false;
      put(link(address, [match[1]]), at + match[0].length);
      return true;
    },
    "h"() {
      if (isWord(text[at - 1])) return false;
      const match = /^https?:\/\/[^\s<>"`]+/.exec(text.slice(at, at + LONGEST_LINK));
      if (!match) return false;
      let shown = match[0].replace(/[.,:;!?'*_~\]]+$/, "");
      while (shown.endsWith(")") && shown.split("(").length < shown.split(")").length) shown = shown.slice(0, -1);
      const address = safeAddress(shown);
      if (!address) return false;
      put(link(address, [shown]), at + shown.length);
      return true;
    },
    "\n"() {
      if (text[at - 1] !== " " || text[at - 2] !== " ") return false;
      plain = plain.trimEnd();
      put(element("br"), at + 1);
      return true;
    },
  };
  const emphasize = () => {
    for (const [mark, name] of MARKS) {
      if (!text.startsWith(mark, at) || missing.has(mark) || isSpace(text[at + mark.length])) continue;
      if (mark[0] === "_" && isWord(text[at - 1])) continue;
      const close = findClose(text, mark, at + mark.length - 1);
      if (close < 0) {
        missing.add(mark);
        continue;
      }
      const node = element(name);
      node.append(...inline(text.slice(at + mark.length, close), depth + 1));
      put(node, close + mark.length);
      return true;
    }
    return false;
  };
  while (at < text.length) {
    const c = text[at];
    if (rules[c]?.() || (/[*_~]/.test(c) && emphasize())) continue;
    plain += c;
    at++;
  }
  if (plain) nodes.push(document.createTextNode(plain));
  return nodes;
}

// ---- blocks ----

// No form may be tried in two ways on a run of equal characters: that takes the square of its length.
const FENCE = /^ {0,3}(`{3,}|~{3,})/;
const HEADING = /^ {0,3}(#{1,6})(?=\s|$)/;
const RULE = /^ {0,3}(?:(?:\*\s*){3,}|(?:-\s*){3,}|(?:_\s*){3,})$/;
const QUOTE = /^ {0,3}> ?/;
const ITEM = /^( {0,3})([-*+]|\d{1,9}[.)])(?: +|$)/;
const DELIMITERS = /^\|?\s*:?-+:?\s*(?:\|\s*:?-+:?\s*)*\|?$/; // of a line without spaces around it

const indentOf = (line) => line.length - line.trimStart().length;

// What opens a block of code: {fence, words behind it}, or null.
function fenceOf(line) {
  const match = FENCE.exec(line);
  if (!match) return null;
  const words = line.slice(match[0].length);
  return match[1][0] === "`" && words.includes("`") ? null : { fence: match[1], words: words.trim() };
}

// Whether |line| closes what |fence| opened.
function closes(line, fence) {
  const found = fenceOf(line);
  return found !== null && found.words === "" && found.fence.startsWith(fence);
}

function headingText(line) {
  const words = line.slice(HEADING.exec(line)[0].length).trim();
  let end = words.length;
  while (words[end - 1] === "#") end--;
  return end === 0 || isSpace(words[end - 1]) ? words.slice(0, end).trim() : words;
}

// A row's cells; \| is no border.
function cellsOf(line) {
  const cells = line.trim().replace(/^\|/, "").split(/(?<!\\)\|/);
  if (cells.at(-1).trim() === "" && cells.length > 1) cells.pop();
  return cells.map((cell) => cell.trim().replaceAll("\\|", "|"));
}

const isTable = (lines, i) =>
  lines[i].includes("|") && i + 1 < lines.length && lines[i + 1].includes("-") && DELIMITERS.test(lines[i + 1].trim()) &&
  cellsOf(lines[i]).length === cellsOf(lines[i + 1]).length;

const begins = (lines, i) =>
  fenceOf(lines[i]) !== null || [HEADING, RULE, QUOTE, ITEM].some((form) => form.test(lines[i])) || isTable(lines, i);

// How many lines the list at |i| has: those of its items, and what is indented behind them.
function listEnd(lines, i) {
  const ordered = /\d/.test(ITEM.exec(lines[i])[2]);
  let content = 0, end = i;
  for (let k = i; k < lines.length; k++) {
    const item = ITEM.exec(lines[k]);
    const sameKind = item && /\d/.test(item[2]) === ordered && !RULE.test(lines[k]);
    if (lines[k].trim() === "") continue;
    const inside = k > i && indentOf(lines[k]) >= content;
    const lazy = k > i && lines[k - 1].trim() !== "" && !begins(lines, k);
    if (!inside && !sameKind && !lazy) break;
    if (!inside && sameKind) content = Math.min(item[0].length, item[1].length + item[2].length + 1);
    end = k + 1;
  }
  return end;
}

// Cuts lines into blocks {kind, from, end}.
function split(lines) {
  const blocks = [];
  for (let i = 0, end; i < lines.length; i = end) {
    const opened = fenceOf(lines[i]);
    let kind;
    end = i + 1;
    if (lines[i].trim() === "") continue;
    if (opened) {
      kind = "code";
      while (end < lines.length && !closes(lines[end], opened.fence)) end++;
      end = Math.min(end + 1, lines.length);
    } else if (HEADING.test(lines[i])) {
      kind = "heading";
    } else if (RULE.test(lines[i])) {
      kind = "rule";
    } else if (QUOTE.test(lines[i])) {
      kind = "quote";
      while (end < lines.length && (QUOTE.test(lines[end]) || (lines[end].trim() !== "" && !begins(lines, end)))) end++;
    } else if (ITEM.test(lines[i])) {
      kind = "list";
      end = listEnd(lines, i);
    } else if (isTable(lines, i)) {
      kind = "table";
      while (end < lines.length && lines[end].includes("|") && lines[end].trim() !== "") end++;
    } else {
      kind = "paragraph";
      while (end < lines.length && lines[end].trim() !== "" && !begins(lines, end)) end++;
    }
    blocks.push({ kind, from: i, end });
  }
  return blocks;
}

function codeBlock(lines) {
  const { fence, words } = fenceOf(lines[0]);
  const closed = lines.length > 1 && closes(lines.at(-1), fence);
  const indent = indentOf(lines[0]);
  const code = lines.slice(1, closed ? -1 : undefined).map((line) => line.slice(Math.min(indent, indentOf(line))));
  const figure = element("figure", undefined, "code"), head = element("figcaption");
  const copy = element("button", "Copy", "copy"), block = element("pre");
  copy.type = "button";
  head.append(element("span", words.split(/\s/)[0]), copy);
  block.tabIndex = 0; // so that keys scroll it
  block.append(element("code", code.join("\n")));
  figure.append(head, block);
  return figure;
}

function listBlock(lines, depth) {
  const first = ITEM.exec(lines[0]), ordered = /\d/.test(first[2]);
  const list = element(ordered ? "ol" : "ul");
  if (ordered && parseInt(first[2]) !== 1) list.start = parseInt(first[2]);
  const items = [];
  let content = 0;
  for (const line of lines) {
    const item = ITEM.exec(line);
    if (item && (items.length === 0 || indentOf(line) < content) && !RULE.test(line)) {
      content = Math.min(item[0].length, item[1].length + item[2].length + 1);
      items.push([line.slice(item[0].length)]);
    } else {
      items.at(-1).push(line.slice(Math.min(content, indentOf(line))));
    }
  }
  const loose = items.some((item) => item.some((line, k) => line.trim() === "" && k > 0 && k + 1 < item.length));
  for (const item of items) {
    const node = element("li"), task = /^\[([ xX])\]\s/.exec(item[0]);
    if (task) {
      const box = element("input");
      box.type = "checkbox", box.disabled = true, box.checked = task[1] !== " ";
      item[0] = item[0].slice(task[0].length);
      node.className = "task";
      node.append(box, " ");
    }
    for (const child of blocks(item, depth + 1)) {
      if (child.tagName === "P" && !loose) node.append(...child.childNodes);
      else node.append(child);
    }
    list.append(node);
  }
  return list;
}

function tableBlock(lines) {
  const sides = cellsOf(lines[1]).map((cell) => (cell.endsWith(":") ? (cell.startsWith(":") ? "center" : "right") : ""));
  const frame = element("div", undefined, "table"), table = element("table");
  frame.tabIndex = 0;
  lines.forEach((line, i) => {
    if (i === 1) return;
    const row = element("tr"), cells = cellsOf(line);
    sides.forEach((side, k) => {
      const cell = element(i === 0 ? "th" : "td", undefined, side);
      cell.append(...inline(cells[k] ?? ""));
      row.append(cell);
    });
    table.append(row);
  });
  frame.append(table);
  return frame;
}

function makeBlock(kind, lines, depth) {
  switch (kind) {
    case "code": return codeBlock(lines);
    case "rule": return element("hr");
    case "list": return listBlock(lines, depth);
    case "table": return tableBlock(lines);
    case "heading": {
      const node = element("h" + HEADING.exec(lines[0])[1].length);
      node.append(...inline(headingText(lines[0])));
      return node;
    }
    case "quote": {
      const node = element("blockquote");
      node.append(...blocks(lines.map((line) => line.replace(QUOTE, "")), depth + 1));
      return node;
    }
    default: {
      const node = element("p");
      node.append(...inline(lines.map((line) => line.trimStart()).join("\n").trimEnd()));
      return node;
    }
  }
}

function blocks(lines, depth) {
  if (depth > DEEPEST) return [element("p", lines.join("\n"))];
  return split(lines).map(({ kind, from, end }) => makeBlock(kind, lines.slice(from, end), depth));
}

const linesOf = (text) => text.replaceAll("\r\n", "\n").replaceAll("\t", "    ").split("\n");

// Shows |text| in |parent|. Of a text that grows only the blocks that changed are made anew.
export function render(parent, text) {
  const lines = linesOf(text), before = parent.shownBlocks ?? [], after = [];
  for (const { kind, from, end } of split(lines)) {
    const source = kind + "\n" + lines.slice(from, end).join("\n"), old = before[after.length];
    after.push(old?.source === source ? old : { source, node: makeBlock(kind, lines.slice(from, end), 0) });
  }
  after.forEach((block, i) => {
    if (parent.childNodes[i] === block.node) return;
    if (i < parent.childNodes.length) parent.replaceChild(block.node, parent.childNodes[i]);
    else parent.append(block.node);
  });
  while (parent.childNodes.length > after.length) parent.lastChild.remove();
  parent.shownBlocks = after;
}
