// Pictures on their way to the server, which reads PNG and JPEG.

const READ_BY_SERVER = ["image/png", "image/jpeg"];
/** Larger files are drawn anew: the model sees no more of them. */
const LARGE_BYTES = 4 << 20;
const LARGE_PIXELS = 2048;

export class Pictures {
  urls = [];
  #list = document.querySelector("#pictures");
  #changed;

  constructor(changed) {
    this.#changed = changed;
  }

  /** Adds those of the files that are pictures; the names of the others. */
  async add(files) {
    const wrong = [];
    for (const file of files) {
      try {
        this.urls.push(await dataUrl(file));
      } catch {
        wrong.push(file.name);
      }
    }
    this.#show();
    return wrong;
  }

  take() {
    const urls = this.urls;
    this.urls = [];
    this.#show();
    return urls;
  }

  #show() {
    this.#list.replaceChildren(...this.urls.map((url, i) => {
      const item = document.createElement("li");
      const image = Object.assign(new Image(), { src: url, alt: `Picture ${i + 1}` });
      const remove = Object.assign(document.createElement("button"), { type: "button", textContent: "×", ariaLabel: `Remove picture ${i + 1}` });
      remove.addEventListener("click", () => {
        this.urls.splice(i, 1);
        this.#show();
      });
      item.append(image, remove);
      return item;
    }));
    this.#list.hidden = !this.urls.length;
    this.#changed();
  }
}

async function dataUrl(file) {
  const bitmap = await createImageBitmap(file);
  const longest = Math.max(bitmap.width, bitmap.height);
  if (READ_BY_SERVER.includes(file.type) && file.size <= LARGE_BYTES) return read(file);
  const scale = Math.min(1, LARGE_PIXELS / longest);
  const canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  const drawn = canvas.toDataURL("image/png");
  return drawn.length <= LARGE_BYTES ? drawn : canvas.toDataURL("image/jpeg", 0.92);
}

function read(file) {
  return new Promise((done, failed) => {
    const reader = new FileReader();
    reader.onload = () => done(reader.result);
    reader.onerror = () => failed(reader.error);
    reader.readAsDataURL(file);
  });
}
