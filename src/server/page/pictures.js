// Pictures that a message shows: chosen, pasted or dropped. They are kept with the conversation, and so made small.

const SIDE = 1280; // pixels of the longer side
const SMALL = 300000; // bytes, up to which a file of a kind that the server reads stays as it is
const KINDS = ["image/png", "image/jpeg"];

export const MOST = 8; // of a message

// What the server is sent, and what may come out of an imported file.
export const isPicture = (value) => typeof value === "string" && /^data:image\/(png|jpeg);base64,[A-Za-z0-9+/]+=*$/.test(value);

const asUrl = (file) => new Promise((resolve, reject) => {
  const reader = new FileReader();
  reader.onload = () => resolve(reader.result);
  reader.onerror = () => reject(reader.error);
  reader.readAsDataURL(file);
});

// A data: URL of the picture in |file|; throws with a sentence.
export async function readPicture(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name || "what was pasted"} is no picture that this browser reads`);
  }
  const longer = Math.max(bitmap.width, bitmap.height);
  if (KINDS.includes(file.type) && file.size <= SMALL && longer <= SIDE) return asUrl(file);
  const scale = Math.min(1, SIDE / longer), canvas = document.createElement("canvas");
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  const context = canvas.getContext("2d");
  context.fillStyle = "#fff"; // behind what is see-through
  context.fillRect(0, 0, canvas.width, canvas.height);
  context.drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas.toDataURL("image/jpeg", 0.9);
}

// Thumbnails of |urls| in |place|; with |drop| each can be taken away.
export function showPictures(place, urls, drop) {
  place.replaceChildren(...urls.map((url, index) => {
    const frame = document.createElement("span"), image = document.createElement("img");
    frame.className = "picture";
    image.src = url;
    image.alt = "Picture " + (index + 1);
    frame.append(image);
    if (drop) {
      const button = document.createElement("button");
      button.type = "button";
      button.textContent = "✕";
      button.className = "quiet";
      button.setAttribute("aria-label", "Take picture " + (index + 1) + " away");
      button.addEventListener("click", () => drop(index));
      frame.append(button);
    }
    return frame;
  }));
  place.hidden = urls.length === 0;
}

// A message's content as OpenAI has it.
export const contentOf = ({ content, pictures }) => !pictures?.length ? content
  : [...pictures.map((url) => ({ type: "image_url", image_url: { url } })), ...(content ? [{ type: "text", text: content }] : [])];
