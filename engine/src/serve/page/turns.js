// Turns of a conversation as the page shows them.

import { Markdown } from "./markdown.js";

const template = name => document.querySelector(name).content.firstElementChild;

/** A question and its pictures. */
export function question({ text, pictures = [] }) {
  const node = template("#question-template").cloneNode(true);
  node.querySelector(".said").textContent = text;
  node.querySelector(".shown").append(...pictures.map((url, i) => url
    ? Object.assign(new Image(), { src: url, alt: `Picture ${i + 1}` })
    : Object.assign(document.createElement("span"), { textContent: "a picture that this browser had no room to keep" })));
  return node;
}

/** An answer that may still grow. */
export class Answer {
  node = template("#answer-template").cloneNode(true);
  #turn;
  #markdown = new Markdown(this.#part(".said"));
  #due = 0;

  constructor(turn) {
    this.#turn = turn;
    this.draw();
  }

  #part(name) {
    return this.node.querySelector(name);
  }

  /** Shows what there is by now, with the next frame. */
  grow() {
    this.#due ||= requestAnimationFrame(() => this.draw());
  }

  draw() {
    cancelAnimationFrame(this.#due);
    this.#due = 0;
    const { text, thoughts = "", thinkingMs, end, problem, figures } = this.#turn;
    const [thinking, summary] = [this.#part(".thinking"), this.#part("summary")];
    const isThinking = !end && !text;
    const seconds = Math.max(1, Math.round((thinkingMs ?? 0) / 1000));
    thinking.hidden = !thoughts;
    thinking.toggleAttribute("data-over", !isThinking);
    summary.textContent = isThinking ? "Thinking" : `Thought for ${seconds} s`;
    const shown = this.#part(".thoughts");
    // What is already there stays, and with it what the reader has selected.
    if (shown.firstChild && thoughts.startsWith(shown.textContent)) shown.firstChild.appendData(thoughts.slice(shown.textContent.length));
    else shown.replaceChildren(document.createTextNode(thoughts));
    this.#markdown.show(text);
    const note = { stopped: "Stopped.", length: "Cut off at the limit of tokens." }[end];
    const line = this.#part(".problem");
    line.textContent = problem ?? note ?? "";
    line.hidden = !line.textContent;
    line.classList.toggle("note", !problem);
    this.node.classList.toggle("under-way", !end);
    this.#part(".tools").hidden = !end;
    this.#part(".copy").hidden = !text;
    this.#part(".figures").textContent = figures ?? "";
  }
}

/** Puts a text on the clipboard; says so on the button. */
export async function copy(text, button) {
  const name = button.textContent;
  let copied = true;
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    copied = copyOld(text);
  }
  button.textContent = copied ? "Copied" : "Not allowed";
  setTimeout(() => (button.textContent = name), 1500);
}

/** Where the page came over plain HTTP from another machine, there is no clipboard but this. */
function copyOld(text) {
  const area = document.createElement("textarea");
  area.value = text;
  area.className = "unseen";
  document.body.append(area);
  area.select();
  const copied = document.execCommand("copy");
  area.remove();
  return copied;
}
