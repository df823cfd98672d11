"use strict";
// One place of the timeline at a time: in each source the line at work is lit, and the
// messages are those that were there then.

const { traces, timeline, words } = JSON.parse(document.getElementById("data").textContent);
const get = (id) => document.getElementById(id);
const picks = [get("first"), get("second")];
let place = 0;

// A sentence in the language of the page, with what stands in its {places}.
const say = (name, values) =>
  words[name].replace(/\{(\w+)\}/g, (_, field) => values[field]);

const chosen = (side) => (picks[side].value === "" ? null : Number(picks[side].value));
const moment = (index, at) => traces[index].moments[timeline[at][index]];
const eventAt = (at) => Math.max(...traces.map((_, index) => moment(index, at)[2]));

function drawSource(side) {
  const index = chosen(side);
  get("code-" + side).replaceChildren();
  if (index === null) return;
  const { name, about, file, code } = traces[index];
  get("title-" + side).textContent = `${name}: ${about}, ${file}`;
  code.forEach((text, number) => {
    const line = document.createElement("span");
    const label = document.createElement("span");
    line.className = "line";
    label.className = "n";
    label.textContent = number + 1;
    line.append(label, text || " ");
    get("code-" + side).append(line);
  });
}

function light(side) {
  const index = chosen(side);
  if (index === null) return;
  const [number, name] = moment(index, place);
  const pane = get("code-" + side);
  pane.querySelector(".lit")?.removeAttribute("aria-current");
  pane.querySelector(".lit")?.classList.remove("lit");
  const line = pane.children[number - 1];
  line.classList.add("lit");
  line.setAttribute("aria-current", "step");
  const outside = line.offsetTop < pane.scrollTop + 24
    || line.offsetTop + line.offsetHeight > pane.scrollTop + pane.clientHeight - 24;
  if (outside) pane.scrollTop = line.offsetTop - pane.clientHeight / 3;
  get("now-" + side).textContent = say("line", { number, name });
}

function drawMessages() {
  const trace = traces[chosen(0)];
  const number = moment(chosen(0), place)[2];
  const before = number ? [...trace.events[number - 1].messages] : [];
  const list = get("messages");
  list.replaceChildren(...trace.events[number].messages.map((each) => {
    const { role, text, lang } = trace.messages[each];
    const item = document.createElement("li");
    const who = document.createElement("b");
    who.textContent = role;
    const known = before.indexOf(each);  // the same words may be said twice
    if (known < 0) item.className = "new";
    else before.splice(known, 1);
    const said = document.createElement("span");
    if (lang) said.lang = lang;
    said.textContent = text;
    item.append(who, said);
    return item;
  }));
  list.scrollTop = list.scrollHeight;
  const last = place === timeline.length - 1;
  const what = trace.events[number].what;
  const values = { number: place + 1, count: timeline.length, what, end: trace.end };
  get("told").textContent = say(last ? "end" : "place", values);
}

function show(at) {
  place = Math.min(Math.max(at, 0), timeline.length - 1);
  get("place").value = place;
  document.querySelector("main").classList.toggle("alone", chosen(1) === null);
  light(0);
  light(1);
  drawMessages();
}

function toEvent(by) {
  let at = place;
  do at += by; while (at > 0 && at < timeline.length - 1 && eventAt(at) === eventAt(place));
  show(at);
}

const keys = {
  ArrowRight: () => show(place + 1),
  ArrowLeft: () => show(place - 1),
  PageDown: () => toEvent(1),
  PageUp: () => toEvent(-1),
  Home: () => show(0),
  End: () => show(timeline.length - 1),
};
document.addEventListener("keydown", (event) => {
  const modified = event.ctrlKey || event.altKey || event.metaKey || event.shiftKey;
  if (modified || event.target.tagName === "SELECT" || !keys[event.key]) return;
  event.preventDefault();
  keys[event.key]();
});
get("on").addEventListener("click", keys.ArrowRight);
get("back").addEventListener("click", keys.ArrowLeft);
get("event").addEventListener("click", keys.PageDown);
get("place").addEventListener("input", (event) => show(Number(event.target.value)));
picks.forEach((pick, side) => pick.addEventListener("change", () => {
  drawSource(side);
  show(place);
}));
get("place").max = timeline.length - 1;
[0, 1].forEach(drawSource);
show(0);
