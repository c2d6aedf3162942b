// The chat: asks, shows what comes, stops.

import { Conversation } from "./conversation.js";
import { Pictures } from "./pictures.js";
import { chat, model } from "./server.js";
import { Settings } from "./settings.js";
import { Answer, copy, question } from "./turns.js";

const at = name => document.querySelector(name);
const [log, empty, box, notice, status] = ["#log", "#empty", "#question", "#notice", "#status"].map(at);
const conversation = new Conversation();
const settings = new Settings(hasNewKey => (hasNewKey ? meet() : box.focus()));
const pictures = new Pictures(enable);
let served = null;
/** What stops the answer that is under way. */
let stopper = null;
/** Whether the end of the conversation stays in sight as it grows. */
let follows = true;

function say(text = "") {
  notice.textContent = text;
  notice.hidden = !text;
}

/** Asks the server who it is. */
async function meet() {
  try {
    served = await model(settings.key);
    at("#model").textContent = served.id;
    document.title = served.id;
    at("#attach").hidden = !served.pictures;
    say();
    box.focus();
  } catch (error) {
    served = null;
    refused(error);
  }
  enable();
}

function refused(error) {
  if (error.status !== 401) return say(error.message);
  const why = settings.key ? "The server does not know this API key." : "This server asks for an API key.";
  say(why);
  settings.open(why);
}

function enable() {
  at("#send").disabled = !(box.value.trim() || pictures.urls.length);
  at("#send").hidden = Boolean(stopper);
  at("#stop").hidden = !stopper;
}

function fit() {
  box.style.height = "auto";
  box.style.height = `${box.scrollHeight}px`;
  enable();
}

function toEnd() {
  log.scrollTop = log.scrollHeight;
}

function show() {
  const nodes = conversation.turns.map((turn, i) => {
    if (turn.role === "user") return question(turn);
    // The page was left while this was written.
    turn.end ??= "stopped";
    const { node } = new Answer(turn);
    wire(node, turn, i === conversation.turns.length - 1);
    return node;
  });
  log.replaceChildren(empty, ...nodes);
  empty.hidden = nodes.length > 0;
  toEnd();
}

function wire(node, turn, isLast) {
  node.querySelector(".copy").addEventListener("click", event => copy(turn.text, event.target));
  const again = node.querySelector(".again");
  again.hidden = !isLast;
  again.addEventListener("click", () => {
    if (stopper) return;
    conversation.turns.pop();
    show();
    answer();
  });
}

function keep() {
  if (!conversation.keep() && conversation.turns.length) {
    say("This browser has no room to keep all of the conversation; its pictures are lost when the page is left.");
  }
}

/** Takes the question from its box and has it answered. */
function send() {
  const text = box.value.trim();
  if (stopper || !(text || pictures.urls.length)) return;
  say();
  conversation.turns.push({ role: "user", text, pictures: pictures.take() });
  box.value = "";
  fit();
  show();
  answer();
}

/** Has the conversation answered. */
async function answer() {
  const turn = { role: "assistant", text: "", thoughts: "" };
  const body = {
    model: served?.id,
    messages: conversation.messages(settings.system),
    stream: true,
    stream_options: { include_usage: true },
    ...settings.fields,
  };
  conversation.turns.push(turn);
  const view = new Answer(turn);
  wire(view.node, turn, true);
  log.querySelectorAll(".again").forEach(button => (button.hidden = true));
  log.append(view.node);
  follows = true;
  toEnd();
  stopper = new AbortController();
  enable();
  status.textContent = "Answering";
  try {
    await write(turn, view, body, stopper.signal);
  } catch (error) {
    turn.end = error.name === "AbortError" ? "stopped" : "failed";
    if (turn.end === "failed") {
      turn.problem = error.message;
      if (error.status === 401) refused(error);
    }
  }
  stopper = null;
  view.draw();
  view.node.querySelector(".again").hidden = false;
  status.textContent = turn.problem ?? (turn.end === "stopped" ? "Stopped" : "The answer is complete");
  keep();
  enable();
  if (follows) toEnd();
}

/** Writes what comes into the turn. */
async function write(turn, view, body, signal) {
  const begin = performance.now();
  let first = 0;
  for await (const { choices: [choice], usage } of chat(body, settings.key, signal)) {
    const { content = "", reasoning_content: thoughts = "" } = choice?.delta ?? {};
    const now = performance.now();
    if (content || thoughts) first ||= now;
    if (thoughts || !turn.text) turn.thinkingMs = now - begin;
    turn.thoughts += thoughts ?? "";
    turn.text += content ?? "";
    if (choice?.finish_reason) turn.end = choice.finish_reason;
    if (usage) turn.figures = figures(usage, first - begin, now - first);
    view.grow();
    if (follows) requestAnimationFrame(toEnd);
  }
  turn.end ??= "stop";
}

function figures({ prompt_tokens, completion_tokens }, firstMs, restMs) {
  const rate = completion_tokens > 1 ? `, ${((completion_tokens - 1) / (restMs / 1000)).toFixed(1)} a second` : "";
  return `${prompt_tokens} tokens read, ${completion_tokens} written${rate}, the first after ${(firstMs / 1000).toFixed(1)} s`;
}

async function add(files) {
  if (served && !served.pictures) return say("This model reads no pictures.");
  const wrong = await pictures.add(files);
  say(wrong.length ? `Not a picture that this browser can read: ${wrong.join(", ")}` : "");
  box.focus();
}

at("#composer").addEventListener("submit", event => {
  event.preventDefault();
  send();
});
box.addEventListener("input", fit);
box.addEventListener("keydown", event => {
  // Enter also ends what an input method composes.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
  event.preventDefault();
  send();
});
at("#stop").addEventListener("click", () => stopper?.abort());
document.addEventListener("keydown", event => {
  if (event.key === "Escape" && !at("#settings").open) stopper?.abort();
});
at("#new").addEventListener("click", () => {
  if (conversation.turns.length && !confirm("Forget this conversation and begin another?")) return;
  stopper?.abort();
  conversation.forget();
  say();
  show();
  box.focus();
});
at("#attach").addEventListener("click", () => at("#file").click());
at("#file").addEventListener("change", async event => {
  await add([...event.target.files]);
  event.target.value = "";
});
document.addEventListener("paste", event => {
  const files = [...event.clipboardData.files];
  if (!files.length) return;
  event.preventDefault();
  add(files);
});
const hasFiles = event => event.dataTransfer?.types.includes("Files");
document.addEventListener("dragover", event => {
  if (!hasFiles(event)) return;
  event.preventDefault();
  at("#drop").hidden = false;
});
document.addEventListener("dragleave", event => {
  if (!event.relatedTarget) at("#drop").hidden = true;
});
document.addEventListener("drop", event => {
  at("#drop").hidden = true;
  if (!hasFiles(event)) return;
  event.preventDefault();
  add([...event.dataTransfer.files]);
});
log.addEventListener("click", event => {
  const button = event.target.closest(".copy-code");
  if (button) copy(button.closest(".code").querySelector("pre").textContent, button);
});
log.addEventListener("scroll", () => {
  follows = log.scrollHeight - log.scrollTop - log.clientHeight < 40;
  at("#to-end").hidden = follows;
});
at("#to-end").addEventListener("click", toEnd);
addEventListener("pagehide", () => conversation.keep());

show();
enable();
meet();
