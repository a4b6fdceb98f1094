// Access control: what it would decide, and by which rule.

import { get } from "../api.js";
import { h, show } from "../dom.js";
import { badge, facts, head, loader, panel } from "../parts.js";

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
    result);
  return {};
}
