// Dead letters: which groups have some, and replaying them.

import { get, part, post } from "../api.js";
import { h, show } from "../dom.js";
import { count, time } from "../format.js";
import { confirm, empty, head, list as paged, loader, say, sheet, table } from "../parts.js";
import { shortened } from "./messages.js";

export function list(root) {
  root.append(head("Dead letters", { sub: "Messages that a group could not consume in all its retries" }));
  const refresh = paged(root, {
    search: "Search by group",
    load: (asked) => get("dead-letters", asked),
    render: (data, asked) => (data.total
      ? table("Groups with dead letters", [
        ["Group", (one) => h("a", { href: `#/dead-letters/${part(one.group)}` }, one.group), "name"],
        ["Dead letters", (one) => count(one.messages), "right"],
      ], data.groups)
      : empty(asked.search ? "No such group has dead letters" : "No dead letters", asked.search ? "Try a part of its name." : "Every message was consumed, or is still retried.")),
  });
  return { refresh };
}

const A_SECOND = 20;
const MOST_A_SECOND = 200;
const pause = (ms) => new Promise((done) => { setTimeout(done, ms); });

export function one(root, { name }) {
  const chosen = new Set();
  const letters = [];
  let cursor = null;
  let writable = false;
  let running = false;
  const button = h("button", { type: "button", id: "replay", disabled: true }, "Replay");
  const rate = h("input", { id: "rate", type: "number", min: 1, max: MOST_A_SECOND, value: A_SECOND, required: true });
  const progress = h("p", { class: "faint", role: "status" });
  const note = h("p", { class: "note" }, "This page only shows. The setting http.writable = true lets it replay messages.");
  const text = h("input", { id: "text", type: "search", autocomplete: "off", spellcheck: "false" });
  const all = h("button", { type: "button", class: "quiet", id: "all", onclick: () => {
    for (const letter of letters) chosen.add(letter.id);
    draw();
  } }, "Choose all shown");
  root.append(head(name, { crumb: ["Dead letters", "#/dead-letters"], sub: "Dead letters, the newest first" }), note,
    h("form", { class: "bar", role: "search", onsubmit: (event) => event.preventDefault() },
      h("label", { class: "field" }, h("span", {}, "With text"), text),
      all, h("label", { class: "field small" }, h("span", {}, "Messages a second"), rate), button), progress);
  const place = h("div", { class: "content" });
  root.append(place);
  const mark = () => {
    button.disabled = !writable || (!chosen.size && !running);
    button.textContent = running ? "Stop" : chosen.size ? `Replay ${chosen.size}` : "Replay";
    all.disabled = !writable || !letters.length;
    note.hidden = writable;
  };
  const asked = () => ({ text: text.value.trim() });
  const load = async () => {
    const [overview, found] = await Promise.all([get("overview"), get(`dead-letters/${part(name)}`, asked())]);
    writable = overview.writable;
    letters.splice(0, letters.length, ...found.messages);
    cursor = found.cursor;
    return found;
  };
  const more = async () => {
    try {
      const found = await get(`dead-letters/${part(name)}`, { ...asked(), cursor });
      letters.push(...found.messages);
      cursor = found.cursor;
    } catch (error) {
      say(error.message);
    }
    draw();
  };
  const inner = h("div", { class: "stack" });
  let total = 0;
  const draw = () => {
    mark();
    show(inner, letters.length || cursor ? sheet("", table("Dead letters", [
      ["Choose", (letter) => h("input", {
        type: "checkbox", "aria-label": `Choose ${letter.key_id}`, id: letter.id, checked: chosen.has(letter.id), disabled: !writable,
        onchange: (event) => {
          if (event.target.checked) chosen.add(letter.id);
          else chosen.delete(letter.id);
          mark();
        },
      })],
      ["Message", (letter) => h("a", { class: "mono", href: `#/messages/${part(letter.id)}?topic=${part(letter.from)}` }, letter.key_id), "name"],
      ["Topic", (letter) => letter.topic],
      ["Dead since", (letter) => time(letter.store_ms)],
      ["Deliveries", (letter) => count(letter.reconsume_times), "right"],
      ["Keys", (letter) => letter.keys.join(" ") || "–"],
      ["Body", shortened],
    ], letters)) : sheet("", empty("No dead letters", text.value ? "None has that text." : "None of this group, or they are gone by now.")),
    h("div", { class: "bar" },
      cursor && h("button", { class: "quiet", type: "button", id: "more", onclick: more }, "More"),
      h("span", { class: "faint" }, `${count(letters.length)} of ${count(total)}`)));
  };
  const refresh = loader(place, load, (found) => {
    total = found.total;
    draw();
    return inner;
  });
  let typed;
  text.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(refresh, 200);
  });
  // As many a second as is asked for, so that consumers are not flooded.
  const replay = async (messages) => {
    running = true;
    let done = 0;
    let failed = [];
    try {
      while (running && messages.length) {
        const some = messages.splice(0, Math.min(MOST_A_SECOND, Math.max(1, rate.valueAsNumber || A_SECOND)));
        const { results } = await post(`dead-letters/${part(name)}/replay`, { messages: some });
        failed = failed.concat(results.filter((result) => result.error));
        for (const result of results) if (!result.error) chosen.delete(result.id);
        done += results.filter((result) => !result.error).length;
        progress.textContent = `${count(done)} replayed, ${count(messages.length)} to go`;
        mark();
        if (messages.length) await pause(1000);
      }
      say(failed.length ? `${count(done)} replayed; ${count(failed.length)} not: ${failed[0].error}` : `${count(done)} replayed`);
    } catch (error) {
      say(error.message);
    }
    running = false;
    draw();
  };
  button.addEventListener("click", async () => {
    if (running) {
      running = false;
      return;
    }
    const messages = [...chosen];
    if (!(await confirm(`Replay ${count(messages.length)} ${messages.length === 1 ? "message" : "messages"} to ${name}?`, "The group gets a copy in a second, once more. The dead letter stays where it is.", "Replay"))) return;
    await replay(messages);
  });
  return { refresh: () => running || cursor || letters.length > 50 || refresh(), close: () => { running = false; } };
}
