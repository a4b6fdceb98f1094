// Dead letters: which groups have some, and giving them back.

import { get, part, post } from "../api.js";
import { h } from "../dom.js";
import { count, time } from "../format.js";
import { empty, head, list as paged, loader, say, sheet, table } from "../parts.js";
import { shortened } from "./messages.js";

export function list(root) {
  root.append(head("Dead letters", { sub: "Messages that a group has given up after all its tries" }));
  const refresh = paged(root, {
    search: "Search by group",
    load: (asked) => get("dead-letters", asked),
    render: (data, asked) => (data.total
      ? table("Groups with dead letters", [
        ["Group", (one) => h("a", { href: `#/dead-letters/${part(one.group)}` }, one.group), "name"],
        ["Dead letters", (one) => count(one.messages), "right"],
      ], data.groups)
      : empty(asked.search ? "No such group has dead letters" : "No dead letters", asked.search ? "Try a part of its name." : "Every message was consumed, or is still tried.")),
  });
  return { refresh };
}

function confirm(question, action) {
  return new Promise((done) => {
    const box = h("dialog", { "aria-labelledby": "question", onclose: () => {
      box.remove();
      done(box.returnValue === "yes");
    } }, h("form", { method: "dialog" },
      h("h2", { id: "question" }, question),
      h("p", { class: "faint" }, "The group gets a copy in a second, and tries it once more. The dead letter stays where it is."),
      h("div", { class: "bar" }, h("button", { class: "quiet", value: "no" }, "Cancel"), h("button", { value: "yes" }, action))));
    document.body.append(box);
    box.showModal();
  });
}

export function one(root, { name }) {
  const chosen = new Set();
  const button = h("button", { type: "button", id: "replay", disabled: true }, "Give back");
  const note = h("p", { class: "note" });
  root.append(head(name, { crumb: ["Dead letters", "#/dead-letters"], sub: "Dead letters, the newest first", end: button }), note);
  const mark = (writable) => {
    button.disabled = !writable || !chosen.size;
    button.textContent = chosen.size ? `Give ${chosen.size} back` : "Give back";
    note.hidden = writable;
  };
  note.textContent = "This page only shows. The setting http.writable = true lets it give messages back.";
  let writable = false;
  const place = h("div", { class: "content" });
  root.append(place);
  const load = async () => {
    const [overview, letters] = await Promise.all([get("overview"), get(`dead-letters/${part(name)}`)]);
    writable = overview.writable;
    return letters;
  };
  const refresh = loader(place, load, (found) => {
    mark(writable);
    if (!found.messages.length) return sheet("", empty("No dead letters", "None of this group, or they are gone by now."));
    return h("div", { class: "stack" },
      sheet("", table("Dead letters", [
        ["Choose", (letter) => h("input", {
          type: "checkbox", "aria-label": `Choose ${letter.key_id}`, id: letter.id, checked: chosen.has(letter.id), disabled: !writable,
          onchange: (event) => {
            if (event.target.checked) chosen.add(letter.id);
            else chosen.delete(letter.id);
            mark(writable);
          },
        })],
        ["Message", (letter) => h("a", { class: "mono", href: `#/messages/${part(letter.id)}?topic=${part(letter.from)}` }, letter.key_id), "name"],
        ["Topic", (letter) => letter.topic],
        ["Dead since", (letter) => time(letter.stored_ms)],
        ["Tries", (letter) => count(letter.retries + 1), "right"],
        ["Keys", (letter) => letter.keys.join(" ") || "–"],
        ["Body", shortened],
      ], found.messages)),
      found.total > found.messages.length && h("p", { class: "faint" }, `These are the newest ${found.messages.length} of ${count(found.total)}.`));
  });
  button.addEventListener("click", async () => {
    const messages = [...chosen];
    if (!(await confirm(`Give ${messages.length} ${messages.length === 1 ? "message" : "messages"} back to ${name}?`, "Give back"))) return;
    try {
      const { results } = await post(`dead-letters/${part(name)}/replay`, { messages });
      const failed = results.filter((result) => result.error);
      for (const result of results) if (!result.error) chosen.delete(result.id);
      say(failed.length ? `${results.length - failed.length} given back; ${failed.length} not: ${failed[0].error}` : `${results.length} given back`);
    } catch (error) {
      say(error.message);
    }
    refresh();
  });
  return { refresh };
}
