// Asking the gateway: JSON there and back, and errors as sentences.

export class Trouble extends Error {}

async function answer(path, options) {
  let response;
  try {
    response = await fetch(path, options);
  } catch {
    throw new Trouble("The gateway does not answer. Is it running?");
  }
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

/** Change something. */
export function post(path, value) {
  return answer(`/api/${path}`, {
    method: "POST",
    headers: { "Content-Type": "application/json", "X-Ropeway": "page" },
    body: JSON.stringify(value),
  });
}

/** Sign out. */
export function remove(path) {
  return answer(`/api/${path}`, { method: "DELETE", headers: { "X-Ropeway": "page" } });
}

/** A name as a part of a path. */
export const part = encodeURIComponent;
