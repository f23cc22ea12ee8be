// The server's interface: models, numbers, and an answer as it comes. Addresses are relative, so that the page also works
// behind a proxy that serves it in a folder.

const headers = (key) => (key ? { Authorization: "Bearer " + key } : {});

async function failure(response) {
  const text = await response.text();
  let sentence = text.slice(0, 500);
  try {
    sentence = JSON.parse(text).error.message;
  } catch { /* a proxy's words */ }
  const error = new Error(String(sentence || response.statusText || "the server answered " + response.status));
  error.status = response.status;
  return error;
}

async function get(path, key) {
  const response = await fetch(path, { headers: headers(key) });
  if (!response.ok) throw await failure(response);
  return response;
}

export async function listModels(key) {
  return (await (await get("v1/models", key)).json()).data;
}

// {name: value}; values of several models are added up.
export async function readMetrics(key) {
  const values = {};
  for (const line of (await (await get("metrics", key)).text()).split("\n")) {
    const match = /^rdna_(\w+)(?:\{[^}]*\})? (\S+)$/.exec(line);
    if (match) values[match[1]] = (values[match[1]] ?? 0) + Number(match[2]);
  }
  return values;
}

// Yields the events' objects. An answer that breaks off without [DONE] is an error.
export async function* askChat(request, key, signal) {
  const response = await fetch("v1/chat/completions", {
    method: "POST",
    headers: { "Content-Type": "application/json", ...headers(key) },
    body: JSON.stringify({ ...request, stream: true, stream_options: { include_usage: true } }),
    signal,
  });
  if (!response.ok) throw await failure(response);
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  for (let rest = ""; ;) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the answer broke off");
    const lines = (rest + value).split("\n");
    rest = lines.pop();
    for (const line of lines) {
      if (!line.startsWith("data: ")) continue;
      if (line === "data: [DONE]") return;
      const event = JSON.parse(line.slice(6));
      if (event.error) throw new Error(event.error.message);
      yield event;
    }
  }
}
