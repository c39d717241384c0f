// The page is whole without this: here is only what finds and what tries.
"use strict";

const shown = 200000; // characters of an answer, at most

// find hides the sections whose names do not contain what is typed.
const find = document.getElementById("find");
find.addEventListener("input", () => {
  const wanted = find.value.trim().toLowerCase();
  for (const section of document.querySelectorAll("section")) {
    section.hidden = !section.dataset.find.toLowerCase().includes(wanted);
  }
});

// address fills in the path and the query of a form.
function address(form) {
  let path = form.dataset.path;
  const query = new URLSearchParams();
  for (const input of form.querySelectorAll("input")) {
    if (input.dataset.in === "path") {
      path = path.replace("{" + input.name + "}", encodeURIComponent(input.value));
    } else if (input.value !== "") {
      query.append(input.name, input.value);
    }
  }
  const text = query.toString();
  return text === "" ? path : path + "?" + text;
}

// pretty lays JSON out; anything else stays as it is.
function pretty(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    return text;
  }
}

// tryIt asks, and shows the answer as it arrives: streams of events do not end.
async function tryIt(form, signal) {
  const out = form.querySelector("pre");
  const url = address(form);
  out.hidden = false;
  out.textContent = "GET " + url;
  const began = performance.now();
  const answer = await fetch(url, { signal });
  const head = () => `GET ${url}\n${answer.status} ${answer.statusText}, ${Math.round(performance.now() - began)} ms\n\n`;
  const decoder = new TextDecoder();
  let text = "";
  for (const reader = answer.body.getReader(); ;) {
    const { done, value } = await reader.read();
    if (done) break;
    text = (text + decoder.decode(value, { stream: true })).slice(0, shown);
    out.textContent = head() + text;
  }
  out.textContent = head() + pretty(text);
}

for (const form of document.querySelectorAll("form")) {
  const stop = form.querySelector(".stop");
  let running = null;
  stop.addEventListener("click", () => running && running.abort());
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    if (running) running.abort();
    const mine = (running = new AbortController());
    stop.hidden = false;
    try {
      await tryIt(form, mine.signal);
    } catch (err) {
      if (err.name !== "AbortError") form.querySelector("pre").textContent += "\n\n" + err.message;
    }
    if (running === mine) {
      running = null;
      stop.hidden = true;
    }
  });
}
