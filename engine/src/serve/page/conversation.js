// What was said, kept in this browser until the next conversation begins.

const PLACE = "tandem.conversation";

/**
 * Turns: `{ role: "user", text, pictures }`, pictures as data URLs, and
 * `{ role: "assistant", text, thoughts, thinkingMs, end, problem, figures }`, whose `end` is "stop", "length", "stopped" or "failed".
 */
export class Conversation {
  turns = [];

  constructor() {
    try {
      const kept = JSON.parse(localStorage.getItem(PLACE));
      if (Array.isArray(kept)) this.turns = kept.filter(turn => ["user", "assistant"].includes(turn?.role) && typeof turn.text === "string");
    } catch {
      // What cannot be read any more was not ours.
    }
  }

  /** Keeps it. Where there is no room for pictures, only how many there were is kept; says whether all of it is. */
  keep() {
    const bare = turn => turn.pictures?.length ? { ...turn, pictures: turn.pictures.map(() => "") } : turn;
    for (const turns of [this.turns, this.turns.map(bare)]) {
      try {
        localStorage.setItem(PLACE, JSON.stringify(turns));
        return turns === this.turns;
      } catch {
        // Full, or not allowed.
      }
    }
    return false;
  }

  forget() {
    this.turns = [];
    localStorage.removeItem(PLACE);
  }

  /** As the server takes it. A turn that failed before a word was said is left out. */
  messages(system) {
    const messages = system ? [{ role: "system", content: system }] : [];
    for (const turn of this.turns) {
      if (turn.role === "user") {
        messages.push({ role: "user", content: content(turn) });
      } else if (turn.text || turn.thoughts) {
        messages.push({ role: "assistant", content: turn.text, ...(turn.thoughts && { reasoning_content: turn.thoughts }) });
      }
    }
    return messages;
  }
}

function content({ text, pictures = [] }) {
  const shown = pictures.filter(url => url);
  if (!shown.length) return text;
  const parts = shown.map(url => ({ type: "image_url", image_url: { url } }));
  return text ? [...parts, { type: "text", text }] : parts;
}
