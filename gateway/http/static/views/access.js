// Access control: what it would decide, and by which rule; users and their policies.

import { get, part, post, put, remove } from "../api.js";
import { h, show } from "../dom.js";
import { ask, badge, confirmDelete, empty, facts, head, loader, panel, say, sheet, table, text } from "../parts.js";

const ACTIONS = ["pub", "sub", "create", "update", "delete", "get", "list"];
const KINDS = ["topic", "group", "cluster", "namespace"];

const choice = (id, words) => h("select", { id }, words.map((word) => h("option", { value: word }, word)));

export function view(root) {
  const principal = h("input", { id: "principal", required: true, autocomplete: "off", spellcheck: "false" });
  const action = choice("action", ACTIONS);
  const kind = choice("kind", KINDS);
  const name = h("input", { id: "name", required: true, autocomplete: "off", spellcheck: "false" });
  const from = h("input", { id: "from", autocomplete: "off", spellcheck: "false", placeholder: "127.0.0.1" });
  const result = h("div", { class: "content" });
  const known = h("div", { class: "content" });
  const field = (label, input, small) => h("label", { class: small ? "field small" : "field" }, h("span", {}, label), input);
  const look = (event) => {
    event.preventDefault();
    result.replaceChildren();
    const asked = { principal: principal.value.trim(), action: action.value, kind: kind.value, name: name.value.trim(), from: from.value.trim() };
    loader(result, () => get("access", asked), (found) => panel("The decision", facts([
      ["Answer", found.allowed ? badge("allowed", "good") : badge("denied", "bad")],
      ["Who", found.principal || "nobody has that name"],
      ["Rule", found.rule],
      found.reason && ["Reason", found.reason],
      found.hook && ["Decided by", found.hook],
      found.dry_run && ["Dry run", "nothing is refused; it is written to the audit log"],
    ].filter(Boolean))));
  };
  show(root, head("Access", { sub: "Who may do what, and by which rule." }),
    panel("Ask", h("form", { class: "bar", onsubmit: look },
      field("User or account", principal),
      field("Action", action, true),
      field("Kind", kind, true),
      field("Name", name),
      field("From address", from, true),
      h("button", { type: "submit" }, "Check"))),
    result, known);
  const refresh = loader(known, () => get("users"), (found) => users(found, () => refresh()));
  return {};
}

const words = (input) => input.value.split(/[\s,]+/).filter(Boolean);
const capital = (word) => word[0].toUpperCase() + word.slice(1);

async function change(question, hint, action, fields, act, refresh) {
  if (await ask(question, hint, action, { fields, act })) {
    say("Changed");
    refresh();
  }
}

function newUser(refresh) {
  const name = text("new-user", "", { required: true });
  const password = text("new-password", "", { required: true, type: "password", autocomplete: "new-password" });
  const type = choice("new-type", ["Normal", "Super"]);
  return change("New user", "It may do nothing before it has policies, unless it is super.", "Create",
    [["Name", name], ["Password, which is the secret key", password], ["Type", type]],
    () => post("users", { user: name.value.trim(), password: password.value, type: type.value }), refresh);
}

function newPolicy(users, refresh) {
  const user = choice("policy-user", users.map((one) => one.user));
  const kind = choice("policy-kind", ["Topic", "Group", "Cluster"]);
  const name = text("policy-name", "", { required: true });
  const actions = text("policy-actions", "Pub Sub", { required: true });
  const sources = text("policy-sources");
  const decision = choice("policy-decision", ["Allow", "Deny"]);
  return change("New policy", "It takes the place of the user's policy of the same resource.", "Save",
    [["User", user], ["Kind", kind], ["Name; it may end in *", name], ["Actions: All, or some of Pub Sub Create Update Delete Get List", actions],
      ["From these addresses alone; empty: from all", sources], ["Decision", decision]],
    () => post("policies", { user: user.value, resource: `${kind.value}:${name.value.trim()}`, actions: words(actions).map(capital), sources: words(sources), decision: decision.value }), refresh);
}

async function deleteUser(name, refresh) {
  if (await confirmDelete("user", name, "Its policies are deleted, too. It is signed out everywhere.", () => remove(`users/${part(name)}`))) refresh();
}

function users(found, refresh) {
  if (found.reason) return panel("Users", h("p", { class: "faint" }, found.reason));
  const writable = found.offered.includes("update");
  const button = (label, name, onclick) => h("button", { type: "button", class: "quiet", "aria-label": `${label} ${name}`, onclick }, label);
  const turn = (one) => (one.status === "enable" ? "disable" : "enable");
  return h("div", { class: "stack" },
    writable && h("div", { class: "bar" },
      h("button", { type: "button", id: "new-user-button", onclick: () => newUser(refresh) }, "New user"),
      h("button", { type: "button", id: "new-policy-button", class: "quiet", onclick: () => newPolicy(found.users, refresh) }, "New policy")),
    sheet("Users", found.users.length ? table("Users", [
      ["User", (one) => one.user, "name"],
      ["Type", (one) => (one.type === "Super" ? badge("super", "warn") : one.type)],
      ["Status", (one) => badge(one.status, one.status === "enable" ? "good" : "bad")],
      ...(writable ? [["Change", (one) => h("div", { class: "bar" },
        button(capital(turn(one)), one.user, () => change(`${capital(turn(one))} ${one.user}?`, "It counts within a second.", capital(turn(one)), [], () => put(`users/${part(one.user)}`, { status: turn(one) }), refresh)),
        button("Delete", one.user, () => deleteUser(one.user, refresh)))]] : []),
    ], found.users) : empty("No users", "`ropeway user create` makes one.")),
    sheet("Policies", found.policies.length ? table("Policies", [
      ["User", (one) => one.user, "name"],
      ["Resource", (one) => h("span", { class: "mono" }, one.resource)],
      ["Actions", (one) => one.actions.join(", ")],
      ["From", (one) => one.sources.join(", ") || "anywhere"],
      ["Decision", (one) => badge(one.decision.toLowerCase(), /allow/i.test(one.decision) ? "good" : "bad")],
      ...(writable ? [["Change", (one) => button("Delete", `${one.user} ${one.resource}`, () => change(
        "Delete the policy?", `${one.user} on ${one.resource}: ${one.actions.join(", ")}`, "Delete", [],
        () => remove(`policies?${new URLSearchParams({ user: one.user, resource: one.resource })}`), refresh))]] : []),
    ], found.policies) : empty("No policies", "`ropeway acl create` makes one.")));
}
