// Settings: kept in this browser, but for the key, which is gone with the tab.

const PLACE = "tandem.settings";
const KEY_PLACE = "tandem.key";
const EFFORTS = [["none", "off"], ["low", "low"], ["", "as usual"], ["max", "most"]];
const FIELDS = ["system", "effort", "temperature", "topP", "maxTokens", "theme"];

export class Settings {
  #form = document.querySelector("#settings form");
  #dialog = document.querySelector("#settings");
  #quick = document.querySelector("#quick-effort");
  #changed;

  /** `changed` is called with whether the key is another one, whenever the dialog is closed. */
  constructor(changed) {
    this.#changed = changed;
    for (const select of [this.#form.elements.effort, this.#quick]) {
      select.append(...EFFORTS.map(([value, name]) => new Option(name, value)));
    }
    this.#form.addEventListener("input", () => this.#keep());
    this.#quick.addEventListener("input", () => {
      this.#form.elements.effort.value = this.#quick.value;
      this.#keep();
    });
    document.querySelector("#reset").addEventListener("click", () => this.#fill({}));
    document.querySelector("#open-settings").addEventListener("click", () => this.open());
    // A click beside the dialog is on the dialog itself.
    this.#dialog.addEventListener("click", event => event.target === this.#dialog && this.#dialog.close());
    let kept = {};
    try {
      kept = JSON.parse(localStorage.getItem(PLACE)) ?? {};
    } catch {
      // Not ours.
    }
    this.#form.elements.key.value = sessionStorage.getItem(KEY_PLACE) ?? "";
    this.#fill(kept);
  }

  get key() {
    return this.#form.elements.key.value.trim();
  }

  get system() {
    return this.#form.elements.system.value.trim();
  }

  /** What a request says besides its messages. A value that cannot be is left out, as the dialog shows it. */
  get fields() {
    const { effort, temperature, topP, maxTokens } = this.#form.elements;
    const number = input => input.value && input.validity.valid ? input.valueAsNumber : undefined;
    return {
      reasoning_effort: effort.value || undefined,
      temperature: number(temperature),
      top_p: number(topP),
      max_tokens: number(maxTokens),
    };
  }

  /** Shows the dialog, at the key if it says why there must be another one. */
  open(why = "") {
    const before = this.key;
    const line = document.querySelector("#why");
    line.textContent = why;
    line.hidden = !why;
    this.#dialog.addEventListener("close", () => this.#changed(this.key !== before), { once: true });
    if (!this.#dialog.open) this.#dialog.showModal();
    if (why) this.#form.elements.key.select();
  }

  #fill(values) {
    for (const name of FIELDS) this.#form.elements[name].value = values[name] ?? "";
    this.#keep();
  }

  #keep() {
    const values = Object.fromEntries(FIELDS.map(name => [name, this.#form.elements[name].value]));
    this.#quick.value = values.effort;
    document.documentElement.dataset.theme = values.theme;
    try {
      localStorage.setItem(PLACE, JSON.stringify(values));
      sessionStorage.setItem(KEY_PLACE, this.#form.elements.key.value);
    } catch {
      // They hold until the page is left.
    }
  }
}
