// What stays in the browser: conversations, one entry each, settings, and the key.
//
//     rdna.chat.ID    {id, title, changed, messages: [{role, content, pictures, reasoning, facts, error, stopped}]}
//     rdna.settings   {system, temperature, …}; only what was set
//     rdna.key, rdna.theme, rdna.model

import { isPicture, MOST } from "./pictures.js";

const CHAT = "rdna.chat.";
const ROLES = ["user", "assistant"];

export const read = (name) => localStorage.getItem("rdna." + name) ?? "";

// False where the browser has no room.
export function write(name, text) {
  try {
    if (text === "") localStorage.removeItem("rdna." + name);
    else localStorage.setItem("rdna." + name, text);
    return true;
  } catch {
    return false;
  }
}

export function readObject(name) {
  try {
    const value = JSON.parse(read(name));
    return value && typeof value === "object" ? value : {};
  } catch {
    return {};
  }
}

export const newChat = () => ({ id: crypto.getRandomValues(new Uint32Array(3)).join("-"), title: "", changed: Date.now(), messages: [] });

// A conversation out of what may be anything; null where it is none.
function checkedChat(value) {
  if (!value || typeof value !== "object" || !Array.isArray(value.messages)) return null;
  const chat = newChat();
  for (const message of value.messages) {
    if (!message || !ROLES.includes(message.role) || typeof message.content !== "string") return null;
    const kept = { role: message.role, content: message.content };
    for (const field of ["reasoning", "facts", "error"]) if (typeof message[field] === "string") kept[field] = message[field];
    if (message.stopped === true) kept.stopped = true;
    if (Array.isArray(message.pictures)) kept.pictures = message.pictures.filter(isPicture).slice(0, MOST);
    chat.messages.push(kept);
  }
  if (typeof value.id === "string" && /^[\w-]{1,64}$/.test(value.id)) chat.id = value.id;
  if (typeof value.title === "string") chat.title = value.title.slice(0, 200);
  if (Number.isFinite(value.changed)) chat.changed = value.changed;
  return chat;
}

// All of them, the last changed first.
export function loadChats() {
  const chats = [];
  for (const name of Object.keys(localStorage)) {
    if (!name.startsWith(CHAT)) continue;
    try {
      const chat = checkedChat(JSON.parse(localStorage.getItem(name)));
      if (chat) chats.push(chat);
    } catch { /* not ours */ }
  }
  return chats.sort((a, b) => b.changed - a.changed);
}

export const saveChat = (chat) => write("chat." + chat.id, JSON.stringify(chat));
export const dropChat = (chat) => write("chat." + chat.id, "");

export const exported = (chats) => JSON.stringify({ format: "rdna conversations", version: 1, conversations: chats }, null, 1);

// The conversations of an exported file; throws with a sentence.
export function imported(text) {
  let value;
  try {
    value = JSON.parse(text);
  } catch {
    throw new Error("the file is no JSON");
  }
  if (value?.format !== "rdna conversations" || !Array.isArray(value.conversations))
    throw new Error("the file has no conversations that this page exported");
  const chats = value.conversations.map(checkedChat);
  if (chats.includes(null)) throw new Error(`conversation ${chats.indexOf(null) + 1} of the file is damaged`);
  return chats;
}
