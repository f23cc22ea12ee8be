// The page of a server that draws: what is asked, how far it is, and the pictures, which stay until the page is left.

import { readPicture } from "./pictures.js";
import { read, readObject, write } from "./store.js";
import { painter } from "./mask.js";

const $ = (id) => document.getElementById(id);
const KEPT = ["prompt", "negative", "width", "height", "steps", "guidance", "seed", "count", "sampler", "scheduler", "strength", "times", "upscaler"];
const brush = painter($("mask"), $("brush"));
let meta = {}, begun = null, running = null;

// ---- the server; addresses are relative, as in stream.js ----

async function ask(path, body, signal) {
  const key = read("key");
  const response = await fetch("../" + path, {
    method: body ? "POST" : "GET", signal, body: body && JSON.stringify(body),
    headers: { ...(key && { Authorization: "Bearer " + key }), ...(body && { "Content-Type": "application/json" }) },
  });
  const text = await response.text();
  let answer = null;
  try {
    answer = JSON.parse(text);
  } catch { /* a proxy's words */ }
  if (response.ok) return answer;
  const detail = answer?.detail, error = new Error((Array.isArray(detail) ? detail[0]?.msg : detail) || answer?.error?.message || text.slice(0, 300) || "the server answered " + response.status);
  error.status = response.status;
  throw error;
}

function say(text, wrong = false) {
  $("state").textContent = text;
  $("state").classList.toggle("wrong", wrong);
}

// ---- what may be added ----

function element(kind, attributes, ...children) {
  const node = document.createElement(kind);
  Object.assign(node, attributes);
  node.append(...children);
  return node;
}

// A row for each LoRA: whether, and how much.
function showLoras() {
  $("loras").hidden = !meta.loras.length;
  for (const name of meta.loras) {
    const use = element("input", { type: "checkbox" }), scale = element("input", { type: "number", step: "any", value: "1", ariaLabel: "How much of " + name });
    const row = element("div", { className: "extra" }, element("label", { className: "line" }, use, name), scale);
    row.read = () => (use.checked ? `<lora:${name}:${scale.value || 1}>` : "");
    $("loras").append(row);
  }
}

// A row for each that is shown a picture.
function showGuides(place, names, module) {
  place.hidden = !names.length;
  for (const name of names) {
    let url = null;
    const file = element("input", { type: "file", accept: "image/*", hidden: true }), image = element("img", { alt: "", hidden: true });
    const button = element("button", { type: "button", className: "quiet", textContent: name + "…" }), scale = element("input", { type: "number", step: "any", min: 0, value: "1", ariaLabel: "How much of " + name });
    const show = (value) => {
      url = value;
      image.hidden = !url;
      if (url) image.src = url;
      button.textContent = url ? "Without " + name : name + "…";
    };
    button.addEventListener("click", () => (url ? show(null) : file.click()));
    file.addEventListener("change", async () => {
      try {
        if (file.files[0]) show(await readPicture(file.files[0]));
      } catch (error) {
        say(error.message, true);
      }
      file.value = "";
    });
    const row = element("div", { className: "extra" }, element("div", {}, button, image, file), scale);
    row.read = () => url && { module, model: name, image: url, weight: Number(scale.value || 1) };
    place.append(row);
  }
}

const rows = (place) => [...place.querySelectorAll(".extra")].map((row) => row.read()).filter(Boolean);

// ---- the picture to begin with ----

async function begin(url) {
  begun = url;
  $("changing").hidden = $("forget").hidden = !url;
  $("larger").hidden = Boolean(url);
  if (!url) return;
  $("shown").src = url;
  await $("shown").decode();
  const { naturalWidth: width, naturalHeight: height } = $("shown"), least = Math.min(1, 2048 / Math.max(width, height));
  const sized = (side) => Math.max(meta.multiple, Math.round(side * least / meta.multiple) * meta.multiple);
  $("width").value = sized(width);
  $("height").value = sized(height);
  brush.begin(width, height);
}

// ---- the request ----

const number = (id) => Number($(id).value);

function request() {
  const units = [...rows($("controls")), ...rows($("adapters"))], mask = begun && brush.read(), times = number("times");
  return {
    prompt: [$("prompt").value, ...rows($("loras"))].join(" ").trim(), negative_prompt: $("negative").value, width: number("width"), height: number("height"), steps: number("steps"), cfg_scale: number("guidance"),
    seed: $("seed").value === "" ? -1 : number("seed"), n_iter: number("count"), sampler_name: $("sampler").value, scheduler: $("scheduler").value,
    ...(units.length && { alwayson_scripts: { controlnet: { args: units } } }),
    ...(begun && { init_images: [begun], denoising_strength: number("strength") }),
    ...(mask && { mask, inpaint_full_res: $("near").checked, inpaint_full_res_padding: 32, inpainting_fill: 1 }),
    ...(!begun && times > 1 && { enable_hr: true, hr_scale: times, hr_upscaler: $("upscaler").value, denoising_strength: number("strength") }),
  };
}

// Until |signal|: how far it is, and what can be seen of it.
async function watch(signal) {
  while (!signal.aborted) {
    await new Promise((wake) => setTimeout(wake, 400));
    try {
      const now = await ask("sdapi/v1/progress", null, signal);
      $("progress").value = now.progress;
      if (now.state.job_count > 1) say(`${now.state.job_count} requests are with the server`);
      else say(now.state.sampling_steps ? `Step ${now.state.sampling_step} of ${now.state.sampling_steps}` : "");
      $("preview").hidden = !now.current_image;
      if (now.current_image) $("preview").src = "data:image/png;base64," + now.current_image;
    } catch { /* the request itself says what is wrong */ }
  }
}

// |work| with progress and a way to stop it, one at a time.
async function run(work) {
  if (running) return;
  running = new AbortController();
  const seen = new AbortController();
  $("draw").disabled = true;
  $("stop").hidden = $("progress").hidden = false;
  $("progress").value = 0;
  say("");
  watch(seen.signal);
  try {
    await work(running.signal);
    say("");
  } catch (error) {
    $("locked").hidden &&= error.status !== 401;
    say(error.name === "AbortError" ? "Stopped" : error.message, error.name !== "AbortError");
  }
  seen.abort();
  running = null;
  $("draw").disabled = false;
  $("stop").hidden = $("progress").hidden = $("preview").hidden = true;
}

// ---- pictures ----

async function enlarge(url, name) {
  await run(async (signal) => {
    const { image } = await ask("sdapi/v1/extra-single-image", { image: url, upscaler_1: name, upscaling_resize: 2 }, signal);
    add("data:image/png;base64," + image, "Enlarged by " + name, null);
  });
}

function add(url, text, seed) {
  const button = (name, act) => {
    const node = element("button", { type: "button", className: "quiet", textContent: name });
    node.addEventListener("click", act);
    return node;
  };
  const figure = element("figure", {}, element("img", { src: url, alt: text }), element("figcaption", { textContent: text }));
  figure.append(element("div", { className: "bar" }, element("a", { href: url, download: `rdna-${seed ?? "large"}.png`, textContent: "Save" }),
    button("Begin with it", () => begin(url).then(() => $("prompt").focus())), ...(seed === null ? [] : [button("Its seed", () => ($("seed").value = seed))]),
    ...meta.upscalers.map((name) => button("Enlarge: " + name, () => enlarge(url, name))), button("Remove", () => figure.remove())));
  $("preview").after(figure);
}

async function draw() {
  write("draw", JSON.stringify(Object.fromEntries(KEPT.map((id) => [id, $(id).value]))));
  await run(async (signal) => {
    const asked = request(), answer = await ask("sdapi/v1/" + (begun ? "img2img" : "txt2img"), asked, signal), info = JSON.parse(answer.info);
    answer.images.forEach((image, i) => add("data:image/png;base64," + image, `${asked.prompt || "No text"} · seed ${info.all_seeds[i]}`, info.all_seeds[i]));
  });
}

// ---- the start ----

function showTheme() {
  const theme = read("theme");
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = { light: "☀", dark: "☾" }[theme] ?? "◐";
}

async function start() {
  const model = (await ask("v1/models")).data[0];
  meta = model.meta;
  const [samplers, schedulers] = await Promise.all([ask("sdapi/v1/samplers"), ask("sdapi/v1/schedulers")]);
  $("sampler").replaceChildren(...samplers.map(({ name, aliases }) => new Option(name, name, false, aliases.includes(meta.sampler))));
  $("scheduler").replaceChildren(...schedulers.map(({ name, label }) => new Option(label, name)));
  $("upscaler").append(...meta.upscalers.map((name) => new Option(name, name)));
  for (const id of ["width", "height"]) $(id).step = meta.multiple;
  for (const id of ["width", "height", "steps", "guidance"]) $(id).value = meta[id];
  showLoras();
  showGuides($("adapters"), meta.ip_adapters, "ip-adapter-auto");
  showGuides($("controls"), meta.controls, "none");
  if (readObject("draw.of").id === model.id) for (const [id, value] of Object.entries(readObject("draw"))) if (KEPT.includes(id)) $(id).value = value;
  for (const id of ["sampler", "scheduler", "times", "upscaler"]) if ($(id).selectedIndex < 0) $(id).selectedIndex = 0;
  write("draw.of", JSON.stringify({ id: model.id }));
  $("model").textContent = `${model.id} · ${meta.family}`;
}

$("ask").addEventListener("submit", (event) => {
  event.preventDefault();
  draw();
});
$("ask").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && event.target.id === "prompt" && !event.shiftKey && !event.isComposing) {
    event.preventDefault();
    $("ask").requestSubmit();
  }
});
$("stop").addEventListener("click", () => running?.abort());
$("choose").addEventListener("click", () => $("init").click());
$("init").addEventListener("change", async () => {
  try {
    if ($("init").files[0]) await begin(await readPicture($("init").files[0]));
  } catch (error) {
    say(error.message, true);
  }
  $("init").value = "";
});
$("forget").addEventListener("click", () => begin(null));
$("unpaint").addEventListener("click", () => brush.begin($("mask").width, $("mask").height));
$("theme").addEventListener("click", () => {
  write("theme", { "": "light", light: "dark" }[read("theme")] ?? "");
  showTheme();
});
$("key").addEventListener("change", () => {
  write("key", $("key").value);
  location.reload();
});
showTheme();
start().catch((error) => {
  $("locked").hidden = error.status !== 401;
  say(error.status === 401 ? "This server asks for a key" : error.message, true);
});
