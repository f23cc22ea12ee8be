// The page of rdna serve: conversations with the model that is served. No text becomes HTML here or in markdown.js.
import { render } from "./markdown.js";
import { askChat, listModels, readMetrics } from "./stream.js";
import { MOST, contentOf, readPicture, showPictures } from "./pictures.js";
import * as store from "./store.js";

const $ = (id) => document.getElementById(id);
const SETTINGS = ["system", "temperature", "top_p", "top_k", "min_p", "repetition_penalty", "seed", "max_tokens", "reasoning_effort"];
const TITLE = 60;

let chats = store.loadChats();
let current = chats[0] ?? store.newChat();
let settings = store.readObject("settings");
let running = null; // {abort, chat, message} while an answer comes
let shown = []; // pictures of the message that is being written
let seeing = new Set(); // models that take some
let note = ""; // in place of the numbers, until the next answer

function button(text, label, action) {
  const node = document.createElement("button");
  node.type = "button";
  node.className = "quiet";
  node.textContent = text;
  node.title = label;
  node.addEventListener("click", action);
  return node;
}

function part(parent, name, className, text) {
  const node = document.createElement(name);
  node.className = className;
  if (text !== undefined) node.textContent = text;
  parent.append(node);
  return node;
}

// ---- the list of conversations ----

function save(chat) {
  if (!chats.includes(chat)) chats.unshift(chat);
  chat.changed = Date.now();
  chat.title = (chat.messages.find((m) => m.role === "user")?.content ?? "").trim().split("\n")[0].slice(0, TITLE);
  chats.sort((a, b) => b.changed - a.changed);
  if (!store.saveChat(chat)) say("This conversation is not kept: the browser has no room left. Delete some, or export them.");
}

function showList() {
  $("list").replaceChildren(...chats.map((chat) => {
    const row = document.createElement("div");
    row.className = "entry";
    const open = button(chat.title || "Untitled", chat.title, () => openChat(chat));
    if (chat === current) open.setAttribute("aria-current", "true");
    const drop = button("✕", "Delete this conversation", () => dropChat(chat));
    drop.setAttribute("aria-label", "Delete " + (chat.title || "Untitled"));
    row.append(open, drop);
    return row;
  }));
}

function openChat(chat) {
  current = chat;
  document.body.classList.remove("listing");
  showAll();
  $("text").focus();
}

function dropChat(chat) {
  if (!confirm(`Delete "${chat.title || "Untitled"}"?`)) return;
  if (running?.chat === chat) running.abort.abort();
  chats = chats.filter((other) => other !== chat);
  store.dropChat(chat);
  if (chat === current) current = chats[0] ?? store.newChat();
  showAll();
}

// ---- messages ----

function showMessage(message, index) {
  const node = document.createElement("article");
  node.className = "message " + message.role;
  node.setAttribute("aria-label", message.role === "user" ? "You" : "Model");
  if (message.role === "assistant") {
    const thoughts = part(node, "details", "thoughts");
    part(thoughts, "summary", "");
    part(thoughts, "div", "markdown");
  }
  showPictures(part(node, "div", "pictures"), message.pictures ?? []);
  part(node, "div", message.role === "user" ? "body plain" : "body markdown");
  part(node, "p", "error");
  const foot = part(node, "div", "foot");
  foot.append(button("Copy", "Copy the text", (event) => copyText(message.content, event.target)),
              button("Edit", "Edit this message", () => edit(message, node)),
              button("Retry", message.role === "user" ? "Ask again from here" : "Another answer", () => retry(current.messages.indexOf(message))));
  part(foot, "span", "facts");
  updateMessage(message, node);
  $("messages").children[index] ? $("messages").children[index].replaceWith(node) : $("messages").append(node);
  return node;
}

function updateMessage(message, node) {
  const body = node.querySelector(".body"), thoughts = node.querySelector(".thoughts");
  if (message.role === "user") body.textContent = message.content;
  else render(body, message.content);
  if (thoughts) {
    const thinks = running?.message === message && !message.content;
    thoughts.hidden = !message.reasoning;
    thoughts.firstChild.textContent = thinks ? "Thinking…" : "What it thought";
    if (message.reasoning) render(thoughts.lastChild, message.reasoning);
  }
  const error = node.querySelector(".error");
  error.textContent = message.error ?? "";
  error.hidden = !message.error;
  node.querySelector(".facts").textContent = [message.stopped ? "stopped" : "", message.facts].filter(Boolean).join(" · ");
  node.classList.toggle("coming", running?.message === message);
}

function showAll() {
  $("messages").replaceChildren();
  current.messages.forEach(showMessage);
  $("messages").classList.toggle("empty", current.messages.length === 0);
  showList();
  showState();
  $("scroll").scrollTop = $("scroll").scrollHeight;
}

const atBottom = () => $("scroll").scrollHeight - $("scroll").scrollTop - $("scroll").clientHeight < 60;

async function copyText(text, where) {
  try {
    await navigator.clipboard.writeText(text);
  } catch { // no permission, or a page without https that is not on this machine
    const field = part(document.body, "textarea", "away");
    field.value = text;
    field.select();
    document.execCommand("copy");
    field.remove();
  }
  const before = where.textContent;
  where.textContent = "Copied";
  setTimeout(() => (where.textContent = before), 1200);
}

// ---- asking ----

function requestOf(chat, end) {
  const messages = chat.messages.slice(0, end).filter((m) => m.content || m.pictures?.length).map((m) => ({ role: m.role, content: contentOf(m) }));
  if (settings.system) messages.unshift({ role: "system", content: settings.system });
  const { system, ...rest } = settings;
  return { model: $("model").value, messages, ...rest };
}

const seconds = (ms) => (ms / 1000).toFixed(ms < 9950 ? 2 : 1) + " s";

// What is known of an answer's rates, as a sentence.
function factsOf(times, usage) {
  const tokens = usage?.completion_tokens ?? times.count, took = times.last - times.first;
  const facts = [`${tokens} token${tokens === 1 ? "" : "s"}`];
  if (tokens > 1 && took > 0) facts.push(`${((tokens - 1) / took * 1000).toFixed(1)} tokens/s`);
  if (times.first) facts.push(`first after ${seconds(times.first - times.asked)}`);
  if (usage) facts.push(`prompt ${usage.prompt_tokens}, ${usage.prompt_tokens_details?.cached_tokens ?? 0} of it cached`);
  return facts.join(" · ");
}

// Adds an event to the message.
function take(message, event, times) {
  const delta = event.choices[0]?.delta ?? {}, reasoning = delta.reasoning_content ?? "", content = delta.content ?? "";
  if (content || reasoning) {
    times.last = performance.now();
    times.first ||= times.last;
    times.count++;
  }
  message.content += content;
  if (reasoning) message.reasoning = (message.reasoning ?? "") + reasoning;
  if (event.choices[0]?.finish_reason === "length") message.error = "The answer was cut off: it reached the most tokens that are allowed.";
  message.facts = factsOf(times, event.usage);
}

async function answer(chat) {
  if (running) return;
  const message = { role: "assistant", content: "" }, times = { asked: performance.now(), first: 0, last: 0, count: 0 };
  const request = requestOf(chat, chat.messages.length), abort = new AbortController();
  chat.messages.push(message);
  running = { abort, chat, message };
  note = "";
  let node = showMessage(message, chat.messages.length - 1), due = false;
  save(chat);
  showList();
  showState();
  $("scroll").scrollTop = $("scroll").scrollHeight;
  const show = () => {
    due = false;
    if (chat !== current) return;
    const follow = atBottom();
    if (!node.isConnected) node = $("messages").children[chat.messages.indexOf(message)]; // it was left and came back
    if (node) updateMessage(message, node);
    if (follow) $("scroll").scrollTop = $("scroll").scrollHeight;
  };
  try {
    for await (const event of askChat(request, store.read("key"), abort.signal)) {
      take(message, event, times);
      if (!due) requestAnimationFrame(show);
      due = true;
    }
  } catch (error) {
    if (error.name === "AbortError") message.stopped = true;
    else message.error = error.message;
    if (error.status === 401) openSettings($("key"));
  }
  running = null;
  if (chats.includes(chat)) save(chat);
  show();
  showList();
  showState();
}

function send() {
  const text = $("text").value.trim();
  if ((!text && !shown.length) || running) return;
  current.messages.push({ role: "user", content: text, ...(shown.length ? { pictures: shown } : {}) });
  $("text").value = "";
  setPictures([]);
  fit($("text"));
  $("messages").classList.remove("empty");
  showMessage(current.messages.at(-1), current.messages.length - 1);
  answer(current);
}

function setPictures(urls) {
  shown = urls;
  showPictures($("pictures"), shown, (index) => (setPictures(shown.filter((_, i) => i !== index)), $("text").focus()));
}

async function addPictures(files) {
  try {
    if (!seeing.has($("model").value)) throw new Error("this model takes no pictures");
    for (const file of files) {
      if (shown.length === MOST) throw new Error(`a message shows ${MOST} pictures at most`);
      setPictures([...shown, await readPicture(file)]);
    }
  } catch (error) {
    say(error.message + ".");
  }
  $("text").focus();
}

function cutFrom(index) {
  current.messages.length = index;
  while ($("messages").children.length > index) $("messages").lastChild.remove();
}

// Answers the message at |index| again, or writes it again where it is an answer.
function retry(index) {
  if (running || index < 0) return;
  cutFrom(current.messages[index].role === "user" ? index + 1 : index);
  answer(current);
}

function edit(message, node) {
  if (running) return;
  const mine = message.role === "user", form = document.createElement("form"), field = part(form, "textarea", "");
  form.className = "edit";
  field.value = message.content;
  field.setAttribute("aria-label", "Edit the message");
  const bar = part(form, "div", "bar"), go = part(bar, "button", "", mine ? "Send" : "Save");
  const leave = () => showMessage(message, current.messages.indexOf(message)).querySelector("button").focus();
  bar.append(button("Cancel", "Esc", leave));
  const done = () => {
    const text = field.value.trim();
    if ((!text && !message.pictures?.length) || running) return;
    message.content = text;
    const index = current.messages.indexOf(message);
    if (mine) cutFrom(index + 1);
    else delete message.facts, delete message.error;
    showMessage(message, index);
    if (mine) answer(current);
    else save(current);
  };
  form.addEventListener("submit", (event) => (event.preventDefault(), done()));
  field.addEventListener("input", () => fit(field));
  field.addEventListener("keydown", (event) => {
    if (event.key === "Escape") event.stopPropagation(), leave();
    if (event.key === "Enter" && (mine ? !event.shiftKey : event.ctrlKey) && !event.isComposing) event.preventDefault(), done();
  });
  go.title = mine ? "Enter" : "Ctrl+Enter";
  node.replaceChildren(form);
  fit(field);
  field.focus();
}

// ---- the line below, and models ----

function say(sentence) {
  note = sentence;
  $("state").textContent = sentence;
}

const gib = (bytes) => (bytes / 2 ** 30).toFixed(bytes < 2 ** 33 ? 2 : 1);

async function showState() {
  $("send").textContent = running ? "Stop" : "Send";
  $("send").title = running ? "Esc" : "Enter";
  document.body.classList.toggle("busy", running !== null);
  if (document.hidden || note) return;
  try {
    const m = await readMetrics(store.read("key")), facts = [];
    if (m.memory_bytes) facts.push(`memory ${gib(m.memory_bytes)}${m.memory_total_bytes ? " of " + gib(m.memory_total_bytes) : ""} GiB`);
    if (m.cache_pages) facts.push(`cache ${Math.round(100 * (1 - m.cache_free_pages / m.cache_pages))} % full`);
    facts.push(m.running + m.waiting ? `${m.running} being written` + (m.waiting ? `, ${m.waiting} waiting` : "") : "idle");
    if (!note) $("state").textContent = facts.join(" · ");
  } catch (error) {
    if (!note) $("state").textContent = error.status ? error.message : "The server does not answer.";
  }
}

async function showModels() {
  try {
    const models = await listModels(store.read("key")), wanted = store.read("model");
    seeing = new Set(models.filter((m) => m.input_modalities?.includes("image")).map(({ id }) => id));
    $("model").replaceChildren(...models.map(({ id }) => new Option(id, id, false, id === wanted)));
    showAttach();
  } catch (error) {
    say(error.status ? error.message : "The server does not answer.");
    if (error.status === 401) openSettings($("key"));
  }
}

const showAttach = () => ($("attach").hidden = !seeing.has($("model").value));

// ---- settings, files, keys ----

function openSettings(first) {
  for (const name of SETTINGS) $(name).value = settings[name] ?? "";
  $("key").value = store.read("key");
  if (!$("settings").open) $("settings").showModal();
  first?.focus();
}

// As they are typed, so that whatever closes the page loses none.
function keepSettings() {
  settings = {};
  for (const name of SETTINGS) {
    const field = $(name), value = field.type === "number" ? field.valueAsNumber : field.value;
    if (value !== "" && !Number.isNaN(value)) settings[name] = value;
  }
  store.write("settings", JSON.stringify(settings));
}

function keepKey() {
  const key = $("key").value.trim();
  if (key === store.read("key")) return;
  store.write("key", key);
  note = "";
  showModels();
  showState();
}

function exportChats() {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([store.exported(chats)], { type: "application/json" }));
  link.download = "rdna-conversations.json";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
}

async function importChats(file) {
  try {
    const found = store.imported(await file.text());
    for (const chat of found) {
      if (running?.chat.id === chat.id) throw new Error("an answer is coming in one of its conversations");
      if (!store.saveChat(chat)) throw new Error("the browser has no room left");
    }
    chats = store.loadChats();
    current = chats.find((chat) => chat.id === current.id) ?? chats[0] ?? current;
    showAll();
    say(`${found.length} conversation${found.length === 1 ? "" : "s"} imported.`);
  } catch (error) {
    say(`Nothing more was imported: ${error.message}.`);
  }
}

function showTheme() {
  const theme = store.read("theme");
  document.documentElement.dataset.theme = theme;
  $("theme").textContent = { light: "☀", dark: "☾" }[theme] ?? "◐";
  $("theme").title = { light: "Light", dark: "Dark" }[theme] ?? "As the system has it";
}

// Grows a field with its text.
function fit(field) {
  field.style.height = "auto";
  field.style.height = field.scrollHeight + 2 + "px";
}

function editLast() {
  const index = current.messages.findLastIndex((m) => m.role === "user");
  if (index >= 0) edit(current.messages[index], $("messages").children[index]);
}

const startNew = () => openChat(chats.find((chat) => chat.messages.length === 0) ?? store.newChat());

function listen() {
  $("composer").addEventListener("submit", (event) => {
    event.preventDefault();
    if (running) running.abort.abort();
    else send();
  });
  $("text").addEventListener("input", () => fit($("text")));
  $("attach").addEventListener("click", () => $("picture").click());
  $("picture").addEventListener("change", async () => {
    await addPictures([...$("picture").files]);
    $("picture").value = "";
  });
  $("text").addEventListener("paste", (event) => {
    const files = [...event.clipboardData.files];
    if (files.length) event.preventDefault(), addPictures(files);
  });
  $("composer").addEventListener("dragover", (event) => event.preventDefault());
  $("composer").addEventListener("drop", (event) => (event.preventDefault(), addPictures([...event.dataTransfer.files])));
  $("text").addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) event.preventDefault(), send();
    if (event.key === "ArrowUp" && !$("text").value) event.preventDefault(), editLast();
  });
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && document.body.classList.contains("listing")) document.body.classList.remove("listing");
    else if (event.key === "Escape" && running && !$("settings").open) running.abort.abort();
    if (!event.altKey || event.ctrlKey || event.metaKey || $("settings").open) return;
    const action = { KeyN: startNew, KeyR: () => retry(current.messages.length - 1), KeyS: () => openSettings() }[event.code];
    if (action) event.preventDefault(), action();
  });
  $("messages").addEventListener("click", (event) => { // of blocks of code
    if (event.target.classList.contains("copy")) copyText(event.target.closest("figure").querySelector("code").textContent, event.target);
  });
  $("new").addEventListener("click", startNew);
  $("open-side").addEventListener("click", () => document.body.classList.add("listing"));
  $("close-side").addEventListener("click", () => document.body.classList.remove("listing"));
  $("open-settings").addEventListener("click", () => openSettings());
  $("settings").addEventListener("input", keepSettings);
  $("settings").addEventListener("close", keepKey);
  $("export").addEventListener("click", exportChats);
  $("import").addEventListener("click", () => $("file").click());
  $("file").addEventListener("change", async () => {
    if ($("file").files[0]) await importChats($("file").files[0]);
    $("file").value = "";
  });
  $("model").addEventListener("change", () => (store.write("model", $("model").value), showAttach()));
  $("theme").addEventListener("click", () => {
    store.write("theme", { "": "light", light: "dark" }[store.read("theme")] ?? "");
    showTheme();
  });
}

listen();
showTheme();
showAll();
showModels();
$("text").focus();
setInterval(() => running && showState(), 2000);
setInterval(showState, 10000);
