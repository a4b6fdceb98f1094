// Asking the gateway: JSON there and back, and errors as sentences.

export class Trouble extends Error {}

// Since when the gateway has not answered, in milliseconds since 1970; 0 where it does.
let goneMs = 0;
let heardMs = Date.now();

function heard(does) {
  if (does) heardMs = Date.now();
  if (does === !goneMs) return;
  goneMs = does ? 0 : heardMs;
  document.dispatchEvent(new CustomEvent("gone", { detail: goneMs }));
}

/** Since when the gateway has not answered; 0 where it does. */
export const goneSince = () => goneMs;

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    heard(false);
    throw new Trouble("The gateway does not answer. Is it running?");
  }
  heard(true);
  let data;
  try {
    data = await response.json();
  } catch {
    throw new Trouble(`The gateway answered ${response.status} without saying why.`);
  }
  if (response.status === 401 && path !== "/api/session") document.dispatchEvent(new Event("sign-in"));
  if (!response.ok) throw new Trouble(data.error || `The gateway answered ${response.status}.`);
  return data;
}

/** Read something; parameters without a value are left out. */
export function get(path, parameters = {}) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value != null);
  const query = new URLSearchParams(given).toString();
  return answer(`/api/${path}${query ? `?${query}` : ""}`);
}

function send(method, path, value) {
  return answer(`/api/${path}`, {
    method,
    headers: { "Content-Type": "application/json", "X-Ropeway": "page" },
    body: JSON.stringify(value),
  });
}

/** Make or do something. */
export const post = (path, value) => send("POST", path, value);

/** Change what is there. */
export const put = (path, value) => send("PUT", path, value);

/** Delete something, or sign out. */
export function remove(path) {
  return answer(`/api/${path}`, { method: "DELETE", headers: { "X-Ropeway": "page" } });
}

/** A name as a part of a path. */
export const part = encodeURIComponent;
