"use strict";
// The page is whole without this: it opens what a link points into, opens and closes
// the details of a question at once, and copies JSON.

function reveal(id) {
  const target = id && document.getElementById(id);
  if (!target) return;
  for (let box = target; box; box = box.parentElement) {
    if (box.tagName === "DETAILS") box.open = true;
  }
  target.scrollIntoView();
}

// The JSON of a pane, with what is folded there in its place.
function jsonOf(pane) {
  const copy = pane.cloneNode(true);
  for (const line of copy.querySelectorAll(".absent")) line.remove();
  for (const fold of copy.querySelectorAll("[data-fold]")) {
    const whole = document.querySelector(fold.hash);
    fold.textContent = jsonOf(whole.querySelector(".json") || whole).trim();
  }
  return copy.textContent;
}

// The words of a button in the language of the page stand beside it.
async function copy(button) {
  button.dataset.copy ??= button.textContent;
  const pane = button.closest("details").querySelector(".json");
  try {
    await navigator.clipboard.writeText(jsonOf(pane));
    button.textContent = button.dataset.copied;
  } catch {
    getSelection().selectAllChildren(pane);
    button.textContent = button.dataset.selected;
  }
  setTimeout(() => (button.textContent = button.dataset.copy), 2000);
}

function openAll(button) {
  const opened = button.getAttribute("aria-pressed") !== "true";
  for (const box of button.closest(".question").querySelectorAll("details.wire")) {
    box.open = opened;
  }
  button.setAttribute("aria-pressed", String(opened));
}

document.addEventListener("click", (event) => {
  const button = event.target.closest("button");
  if (button?.matches(".copy")) copy(button);
  if (button?.matches(".open-all")) openAll(button);
  const link = event.target.closest('a[href^="#"]');
  if (link) setTimeout(() => reveal(link.hash.slice(1)));
});
for (const button of document.querySelectorAll("button[hidden]")) button.hidden = false;
if (location.hash) reveal(location.hash.slice(1));
