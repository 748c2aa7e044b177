// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// The menu of narrow windows, the search, and buttons that copy. The pages work without any of it, from files too.
"use strict";

const root = document.body.dataset.root;

const menu = document.querySelector(".menu");
const nav = document.getElementById("nav");
menu.addEventListener("click", () => {
  menu.setAttribute("aria-expanded", String(nav.classList.toggle("shown")));
});
const current = nav.querySelector("[aria-current]");
if (current) nav.scrollTop = current.offsetTop - nav.offsetTop - nav.clientHeight / 2; // and not the window, which goes to its #place

for (const pre of document.querySelectorAll("main pre")) {
  pre.tabIndex = 0; // a block that is too wide is scrolled by keyboard
  const block = document.createElement("div");
  block.className = "block";
  pre.replaceWith(block);
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(commands(pre));
    button.textContent = "Copied";
    setTimeout(() => { button.textContent = "Copy"; }, 1500);
  });
  block.append(pre, button);
}

// commands is what a block is copied for: of a console, the lines behind a prompt without what they print.
function commands(pre) {
  const text = pre.textContent;
  if (!text.startsWith("$ ")) return text;
  const out = [];
  let goesOn = false;
  for (const line of text.split("\n")) {
    if (!goesOn && !line.startsWith("$ ")) continue;
    out.push(goesOn ? line : line.slice(2));
    goesOn = line.endsWith("\\");
  }
  return out.join("\n") + "\n";
}

// The index is a script that calls this, as pages from files may not fetch.
let sections = null;
window.prerigIndex = (list) => { sections = list.map((s) => ({ ...s, title: s.t.toLowerCase(), head: s.h.toLowerCase(), text: s.x.toLowerCase() })); show(); };

const input = document.getElementById("search");
const found = document.getElementById("found");
const count = document.getElementById("count");
let selected = -1;

function load() {
  if (document.getElementById("index")) return;
  const script = document.createElement("script");
  script.id = "index";
  script.src = root + "search-index.js";
  document.head.append(script);
}

// search returns the sections that have all words, those that fit best first. A word fits where it begins one, and less well inside;
// one that few sections have says more.
function search(words) {
  const fits = sections.map((s) => words.map((w) => Math.max(place(s.head, w) * 8, place(s.title, w) * 5, place(s.text, w))));
  const weights = words.map((_, i) => Math.log(1 + sections.length / (1 + fits.filter((f) => f[i] > 0).length)));
  const score = (fit, section) => fit.reduce((sum, n, i) => sum + n * weights[i], section.h === section.t ? 1 : 0);
  return sections.map((s, i) => [fits[i].every((n) => n > 0) ? score(fits[i], s) : 0, s]).filter(([n]) => n > 0)
    .sort((a, b) => b[0] - a[0]).slice(0, 12).map(([, s]) => s);
}

function place(text, word) {
  let best = 0;
  for (let at = text.indexOf(word), n = 0; at >= 0 && n < 50; at = text.indexOf(word, at + 1), n++) {
    const begins = at === 0 || !isWord(text[at - 1]);
    const ends = at + word.length === text.length || !isWord(text[at + word.length]);
    best = Math.max(best, begins && ends ? 4 : begins ? 2 : word.length > 2 ? 1 : 0);
    if (best === 4) break;
  }
  return best;
}

const isWord = (c) => /[\p{L}\p{N}]/u.test(c);

function show() {
  const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
  selected = -1;
  found.replaceChildren();
  input.removeAttribute("aria-activedescendant");
  const open = words.length > 0 && sections !== null && document.activeElement === input;
  found.hidden = !open;
  input.setAttribute("aria-expanded", String(open));
  if (!open) return;
  const hits = search(words);
  count.textContent = hits.length + " found";
  if (hits.length === 0) {
    const none = document.createElement("p");
    none.textContent = "Nothing has all of these words.";
    found.append(none);
  }
  hits.forEach((s, i) => found.append(result(s, words, i)));
}

function result(section, words, i) {
  const link = document.createElement("a");
  link.href = root + section.u;
  link.id = "hit-" + i;
  link.setAttribute("role", "option");
  link.tabIndex = -1;
  const title = document.createElement("b");
  marked(title, section.h === section.t ? section.t : section.t + " › " + section.h, words);
  const text = document.createElement("span");
  const at = Math.max(0, Math.min(...words.map((w) => section.text.indexOf(w)).filter((n) => n >= 0), section.x.length) - 40);
  marked(text, (at > 0 ? "…" : "") + section.x.slice(at < section.x.length ? at : 0, at + 150), words);
  link.append(title, text);
  return link;
}

function marked(element, text, words) {
  const lower = text.toLowerCase();
  for (let at = 0; at < text.length;) {
    let next = text.length, length = 0;
    for (const word of words) {
      const n = lower.indexOf(word, at);
      if (n >= 0 && (n < next || n === next && word.length > length)) { next = n; length = word.length; }
    }
    element.append(text.slice(at, next));
    if (length === 0) break;
    const mark = document.createElement("mark");
    mark.textContent = text.slice(next, next + length);
    element.append(mark);
    at = next + length;
  }
}

function choose(n) {
  const links = [...found.querySelectorAll("a")];
  if (links.length === 0) return;
  selected = (n + links.length) % links.length;
  links.forEach((link, i) => link.setAttribute("aria-selected", String(i === selected)));
  links[selected].scrollIntoView({ block: "nearest" });
  input.setAttribute("aria-activedescendant", links[selected].id);
}

input.addEventListener("focus", () => { load(); show(); });
input.addEventListener("input", show);
input.addEventListener("keydown", (event) => {
  if (event.key === "ArrowDown") choose(selected + 1);
  else if (event.key === "ArrowUp") choose(selected < 0 ? -1 : selected - 1);
  else if (event.key === "Enter") found.querySelectorAll("a")[Math.max(selected, 0)]?.click();
  else if (event.key === "Escape") { input.value = ""; show(); input.blur(); }
  else return;
  event.preventDefault();
});
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.ctrlKey && !event.metaKey && !event.altKey && !/^(INPUT|TEXTAREA|SELECT)$/.test(document.activeElement.tagName)) {
    event.preventDefault();
    input.focus();
  }
});
document.addEventListener("click", (event) => {
  if (!event.target.closest(".search")) { found.hidden = true; input.setAttribute("aria-expanded", "false"); }
  else if (event.target.closest(".found a")) { found.hidden = true; }
});
