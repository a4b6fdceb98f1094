// The page: which view is shown, kept fresh while somebody looks, light or dark.

import { get, goneSince, remove } from "./api.js";
import { h, show } from "./dom.js";
import { clock } from "./format.js";
import { empty, head } from "./parts.js";
import { signIn } from "./sign-in.js";
import * as access from "./views/access.js";
import * as clients from "./views/clients.js";
import * as deadLetters from "./views/dead-letters.js";
import * as groups from "./views/groups.js";
import * as messages from "./views/messages.js";
import * as overview from "./views/overview.js";
import * as routes from "./views/routes.js";
import * as topics from "./views/topics.js";
import * as waiting from "./views/waiting.js";

const FRESH_MS = 5000;

// Path, name in the navigation, what shows the whole, and what shows one of them.
const VIEWS = [
  ["", "Overview", overview.view],
  ["topics", "Topics", topics.list, topics.one],
  ["groups", "Groups", groups.list, groups.one],
  ["clients", "Clients", clients.view, clients.one],
  ["messages", "Messages", messages.search, messages.one],
  ["waiting", "Waiting", waiting.view],
  ["dead-letters", "Dead letters", deadLetters.list, deadLetters.one],
  ["routes", "Routes", routes.view, routes.view],
  ["access", "Access", access.view],
];

const main = document.getElementById("main");
let shown = {};

function open() {
  const [path, query = ""] = (location.hash.replace(/^#\/?/, "") || "").split("?");
  const [place, ...rest] = path.split("/");
  const found = VIEWS.find(([name]) => name === place);
  const what = found && (rest.length ? found[3] : found[2]);
  if (shown.close) shown.close();
  show(main);
  for (const link of document.querySelectorAll("#nav a")) {
    if (link.getAttribute("href") === `#/${place}`) {
      link.setAttribute("aria-current", "page");
      link.scrollIntoView({ block: "nearest", inline: "center" });
    } else link.removeAttribute("aria-current");
  }
  if (!what) {
    shown = {};
    show(main, head("There is no such view"), empty("Nothing is here", "Choose one of the views."));
    return;
  }
  let name = rest.join("/");
  try {
    name = decodeURIComponent(name);
  } catch {
    // It is shown as it came.
  }
  shown = what(main, { name, query: new URLSearchParams(query) }) || {};
  scrollTo(0, 0);
}

function theme(wanted) {
  document.documentElement.dataset.theme = wanted;
  document.getElementById("theme").textContent = wanted === "dark" ? "Light" : "Dark";
  document.getElementById("theme").setAttribute("aria-label", `Use ${wanted === "dark" ? "light" : "dark"} colours`);
  document.dispatchEvent(new Event("theme"));
}

const dark = matchMedia("(prefers-color-scheme: dark)");
theme(localStorage.getItem("theme") || (dark.matches ? "dark" : "light"));
dark.addEventListener("change", () => localStorage.getItem("theme") || theme(dark.matches ? "dark" : "light"));
document.getElementById("theme").addEventListener("click", () => {
  const wanted = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
  localStorage.setItem("theme", wanted);
  theme(wanted);
});

show(document.getElementById("nav"), VIEWS.map(([path, name]) => h("li", {}, h("a", { href: `#/${path}` }, name))));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  main.focus();
});
addEventListener("hashchange", () => {
  if (asking) return;
  open();
  main.focus({ preventScroll: true });
});
// A gateway that is gone is asked until it is back, whatever is shown.
const hello = () => get("session").catch(() => {});
setInterval(() => document.hidden || (shown.refresh && !goneSince() ? shown.refresh() : hello()), FRESH_MS);

const gone = document.getElementById("gone");
document.addEventListener("gone", ({ detail }) => {
  if (!detail && shown.refresh) shown.refresh();
  show(gone, detail && h("p", { class: "trouble" },
    h("strong", {}, `The gateway has not answered since ${clock(detail)}. `),
    "What you see is older. The page goes on as soon as it answers."));
});

// Who looks: where access control is on, somebody who has signed in.
let asking = false;
function ask() {
  if (asking) return;
  asking = true;
  if (shown.close) shown.close();
  shown = {};
  show(document.getElementById("who"));
  signIn(main, () => {
    asking = false;
    begin();
  });
}

async function begin() {
  let session;
  try {
    session = await get("session");
  } catch {
    session = { needed: false };
  }
  if (session.needed && !session.name) {
    ask();
    return;
  }
  if (session.needed) {
    show(document.getElementById("who"),
      h("span", {}, session.name),
      h("button", { class: "quiet", type: "button", onclick: () => remove("session").finally(ask) }, "Sign out"));
  }
  open();
  get("overview").then(
    (found) => show(document.getElementById("where"), `${found.cluster}, by ${found.node.broker}. Ropeway ${found.version}`),
    () => {},
  );
}

document.addEventListener("sign-in", ask);
begin();
