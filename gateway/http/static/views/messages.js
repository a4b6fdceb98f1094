// Messages: looked up by key, id or time; one with its body and what became of it.

import { get, part } from "../api.js";
import { h, show } from "../dom.js";
import { bytes, count, time } from "../format.js";
import { badge, empty, facts, head, loader, panel, sheet, table } from "../parts.js";

const WAYS = [["time", "Newest, or by time"], ["key", "By key"], ["id", "By message id"]];
const moment = (text) => (text ? new Date(text).getTime() : "");

export function shortened(message) {
  const whole = new TextEncoder().encode(message.start).length >= message.size;
  return h("span", { class: "mono short" }, message.start.replaceAll(/\s+/g, " "), !whole && "…");
}

const link = (message) => h("a", { class: "mono", href: `#/messages/${part(message.id)}?topic=${part(message.from)}` }, message.key_id);

export function search(root, { query }) {
  let way = WAYS.find(([name]) => query.has(name))?.[0] || "time";
  const topics = h("datalist", { id: "topics" });
  const topic = h("input", { id: "topic", list: "topics", required: true, autocomplete: "off", spellcheck: "false", value: query.get("topic") || "" });
  const word = h("input", { id: "word", autocomplete: "off", spellcheck: "false", value: query.get(way) || "" });
  const begin = h("input", { id: "begin", type: "datetime-local", step: "1" });
  const end = h("input", { id: "end", type: "datetime-local", step: "1" });
  const field = (name, input) => h("label", { class: "field" }, h("span", {}, name), input);
  const asks = h("div", { class: "bar" });
  const buttons = h("div", { class: "choices", role: "group", "aria-label": "How to look" });
  const results = h("div", { class: "content" });

  const choose = (wanted) => {
    way = wanted;
    show(buttons, WAYS.map(([name, text]) => h("button", { type: "button", id: `way-${name}`, "aria-pressed": String(name === way), onclick: () => choose(name) }, text)));
    show(asks, field("Topic", topic),
      way === "time" ? [field("From", begin), field("To", end)] : field(way === "key" ? "Key" : "Message id", word),
      h("button", { type: "submit" }, "Search"));
    word.required = way !== "time";
  };
  const look = () => {
    results.replaceChildren();
    const asked = { topic: topic.value.trim(), limit: 50 };
    if (way === "time") Object.assign(asked, { begin: moment(begin.value), end: moment(end.value) });
    else asked[way] = word.value.trim();
    history.replaceState(null, "", `#/messages?topic=${part(asked.topic)}${way === "time" ? "" : `&${way}=${part(asked[way])}`}`);
    loader(results, () => get("messages", asked), (found) => (found.messages.length
      ? sheet("", table("Messages", [
        ["Message", link, "name"],
        ["Stored", (one) => time(one.stored_ms)],
        ["Queue", (one) => `${one.broker} / ${one.queue_id}, ${count(one.offset)}`],
        ["Tag", (one) => one.tags || "–"],
        ["Keys", (one) => one.keys.join(" ") || "–"],
        ["Body", shortened],
      ], found.messages))
      : sheet("", empty("Nothing found", way === "time" ? "No message of the topic was stored in that time, or it is gone by now." : `No message of the topic has that ${way === "key" ? "key" : "id"}, or it is gone by now.`))));
  };
  let typed;
  topic.addEventListener("input", () => {
    clearTimeout(typed);
    typed = setTimeout(async () => {
      try {
        const found = await get("topics", { search: topic.value.trim(), kind: "all", limit: 20 });
        show(topics, found.topics.map((one) => h("option", { value: one.name })));
      } catch (error) {
        console.info(error.message);
      }
    }, 200);
  });
  root.append(head("Messages"), h("form", { class: "panel", role: "search", onsubmit: (event) => {
    event.preventDefault();
    look();
  } }, buttons, asks, topics), results);
  choose(way);
  if (topic.value) look();
  else results.append(h("section", { class: "panel" }, empty("Which topic?", "Name one, and how to look in it. Looking changes nothing: no group moves.")));
  return {};
}

function body(message) {
  if (message.compression) return [h("p", { class: "note" }, `The body is compressed by ${message.compression}, and is shown as it is.`), hex(message)];
  if (message.body === null) return hex(message);
  let text = message.body;
  try {
    if (/^\s*[[{]/.test(text)) text = JSON.stringify(JSON.parse(text), null, 2);
  } catch {
    // It only looked like JSON.
  }
  return h("pre", { class: "body", tabindex: "0" }, text);
}

function hex(message) {
  const data = Uint8Array.from(atob(message.body_base64), (one) => one.charCodeAt(0)).slice(0, 4096);
  const lines = [];
  for (let at = 0; at < data.length; at += 16) {
    const row = [...data.slice(at, at + 16)];
    const shown = row.map((one) => (one > 31 && one < 127 ? String.fromCharCode(one) : "."));
    lines.push(`${at.toString(16).padStart(6, "0")}  ${row.map((one) => one.toString(16).padStart(2, "0")).join(" ").padEnd(48)} ${shown.join("")}`);
  }
  return h("pre", { class: "body", tabindex: "0" }, lines.join("\n"));
}

const KINDS = { Pub: "Sent", SubBefore: "Consuming began", SubAfter: "Consumed", EndTransaction: "Transaction ended", Recall: "Recalled" };

function steps(trace) {
  if (!trace.length) {
    return h("p", { class: "faint" }, "No client has written a trace of it. Java clients do when they are told to: setEnableTrace, or enableMsgTrace before 5.");
  }
  return h("ol", { class: "steps" }, trace.map((step) => h("li", { class: step.ok === false ? "bad" : "" },
    h("strong", {}, step.ok === false ? `${KINDS[step.kind]}, without success` : KINDS[step.kind]), " ",
    step.group && ["by ", h("span", { class: "mono" }, step.group)],
    h("p", { class: "faint" }, [step.time_ms && time(step.time_ms), step.cost_ms != null && `took ${step.cost_ms} ms`, step.retries && `retry ${step.retries}`].filter(Boolean).join(", ")))));
}

export function one(root, { name, query }) {
  const topic = query.get("topic") || "";
  root.append(head("Message", { sub: h("span", { class: "mono" }, name), crumb: [topic || "Messages", `#/messages?topic=${part(topic)}`] }));
  const place = h("div", { class: "content" });
  root.append(place);
  loader(place, () => get(`messages/${part(name)}`, { topic }), (message) => h("div", { class: "stack" },
    h("div", { class: "columns" },
      panel("Where and when", facts([
        ["Topic", h("a", { href: `#/topics/${part(message.from)}` }, message.from)],
        ["Queue", `${message.broker} / ${message.queue_id}, offset ${count(message.offset)}`],
        ["Message id", h("span", { class: "mono" }, message.key_id)],
        ["Tag", message.tags ? badge(message.tags) : "none"],
        ["Keys", message.keys.length ? h("span", { class: "badges" }, message.keys.map((key) => badge(key))) : "none"],
        ["Sent", `${time(message.born_ms)} from ${message.born_host}`],
        ["Stored", `${time(message.stored_ms)} by ${message.stored_host}`],
        ["Retries", count(message.retries)],
      ])),
      panel("What became of it", steps(message.trace))),
    panel(`Body, ${bytes(message.size)}`, body(message), message.cut && h("p", { class: "note" }, "This is its beginning.")),
    sheet("Properties", table("Properties", [
      ["Name", (pair) => h("span", { class: "mono" }, pair[0]), "name"],
      ["Value", (pair) => h("span", { class: "mono" }, pair[1])],
    ], Object.entries(message.properties).sort()))));
  return {};
}
