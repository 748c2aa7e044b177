// SPDX-FileCopyrightText: The Prerig Authors
// SPDX-License-Identifier: Apache-2.0

// Keeps a page up to date: when the server says that something has changed, the page is asked for anew and its parts that differ are
// replaced. Everything works without this script; then a page is as old as when it was loaded.
"use strict";

const main = document.getElementById("main");
const sign = document.getElementById("live");
let source, asked = false, again = false;

// Parts have an id and stand right below main. What somebody has done to one survives its replacement.
function keep(part) {
  const open = new Map([...part.querySelectorAll("details[id]")].map((d) => [d.id, d.open]));
  const chosen = new Set([...part.querySelectorAll("input[type=checkbox]:checked")].map((c) => c.value));
  const unchosen = new Set([...part.querySelectorAll("input[type=checkbox]:not(:checked)")].map((c) => c.value));
  const focused = part.contains(document.activeElement) ? place(document.activeElement) : null;
  return (fresh) => {
    for (const d of fresh.querySelectorAll("details[id]")) if (open.has(d.id)) d.open = open.get(d.id);
    for (const c of fresh.querySelectorAll("input[type=checkbox]")) {
      if (chosen.has(c.value)) c.checked = true;
      else if (unchosen.has(c.value)) c.checked = false;
    }
    if (focused) [...fresh.querySelectorAll("a, button, input, summary")].find((e) => place(e) === focused)?.focus({preventScroll: true});
  };
}

// place tells apart what can have the focus.
function place(e) {
  const inside = e.closest("details[id], form[id], tr, li");
  return [e.tagName, e.getAttribute("href"), e.name, e.value, e.getAttribute("form"), e.tagName === "SUMMARY" ? e.parentElement.id : inside?.id].join("\n");
}

// isTyping reports whether somebody is in the middle of something that a replacement would take away.
function isTyping(part) {
  const e = document.activeElement;
  return part.contains(e) && e.matches("input[type=search], input[type=text], input[type=password]") && e.value !== e.defaultValue;
}

function replaceParts(fresh) {
  const parts = (of) => [...of.children].filter((e) => e.id);
  const wanted = parts(fresh);
  for (const part of parts(main)) if (!wanted.some((w) => w.id === part.id)) part.remove();
  let last = null; // the part before the next one
  for (const now of wanted) {
    const part = parts(main).find((e) => e.id === now.id);
    const was = now.outerHTML;
    if (part && (isTyping(part) || part.dataset.was === was)) {
      last = part;
      continue;
    }
    if (part) {
      const restore = keep(part);
      part.replaceWith(now);
      restore(now);
    } else if (last) last.after(now);
    else main.querySelector("h1").after(now);
    now.dataset.was = was;
    last = now;
  }
  const title = fresh.querySelector("h1");
  if (title && main.querySelector("h1").innerHTML !== title.innerHTML) main.querySelector("h1").replaceWith(title);
}

async function refresh() {
  if (document.hidden) { again = true; return; }
  if (asked) { again = true; return; }
  asked = true; again = false;
  try {
    const answer = await fetch(location.href, {headers: {Accept: "text/html"}, redirect: "error"});
    if (!answer.ok) throw new Error(answer.status);
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const fresh = page.getElementById("main");
    if (fresh?.dataset.events !== main.dataset.events) throw new Error("another page");
    document.title = page.title;
    replaceParts(fresh);
    say("up to date");
  } catch {
    say("not up to date: load the page again");
  }
  asked = false;
  if (again) setTimeout(refresh, 1000);
}

function say(text) { sign.textContent = text; }

function follow() {
  source = new EventSource(main.dataset.events);
  let lost = false;
  source.addEventListener("open", () => { say("up to date"); if (lost) refresh(); lost = false; });
  source.addEventListener("changed", refresh);
  source.addEventListener("error", () => {
    lost = true;
    say(source.readyState === EventSource.CLOSED ? "not up to date: load the page again" : "connecting again");
  });
}

if (main.dataset.events && window.EventSource) {
  follow();
  setInterval(refresh, 60000); // times, and what no event tells of
  document.addEventListener("visibilitychange", () => { if (!document.hidden && again) refresh(); });
  addEventListener("pagehide", () => source.close());
  addEventListener("pageshow", (e) => { if (e.persisted) { follow(); refresh(); } });
}
