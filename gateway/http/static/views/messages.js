// Messages: looked up by key, id or time; one with its body and what became of it.

import { get, part } from "../api.js";
import { h, show } from "../dom.js";
import { bytes, count, time } from "../format.js";
import { badge, empty, facts, head, loader, panel, say, sheet, table } from "../parts.js";

const WAYS = [["time", "Newest, or by time"], ["key", "By key"], ["id", "By message id"]];
const moment = (text) => (text ? new Date(text).getTime() : "");

export function shortened(message) {
  const whole = new TextEncoder().encode(message.start).length >= message.size;
  return h("span", { class: "mono short" }, message.start.replaceAll(/\s+/g, " "), !whole && "…");
}

const link = (message) => h("a", { class: "mono", href: `#/messages/${part(message.id)}?topic=${part(message.from)}` }, message.key_id);

const LIVE_MS = 2000;
// Messages that a live look reads, of which those with the text are shown.
const LIVE_MOST = 200;

const rows = (messages) => table("Messages", [
  ["Message", link, "name"],
  ["Stored", (one) => time(one.store_ms)],
  ["Queue", (one) => `${one.broker} / ${one.queue_id}, ${count(one.offset)}`],
  ["Tag", (one) => one.tag || "–"],
  ["Keys", (one) => one.keys.join(" ") || "–"],
  ["Body", shortened],
], messages);

export function search(root, { query }) {
  let way = WAYS.find(([name]) => query.has(name))?.[0] || "time";
  const topics = h("datalist", { id: "topics" });
  const topic = h("input", { id: "topic", list: "topics", required: true, autocomplete: "off", spellcheck: "false", value: query.get("topic") || "" });
  const word = h("input", { id: "word", autocomplete: "off", spellcheck: "false", value: query.get(way) || "" });
  const begin = h("input", { id: "begin", type: "datetime-local", step: "1" });
  const end = h("input", { id: "end", type: "datetime-local", step: "1" });
  const text = h("input", { id: "text", type: "search", autocomplete: "off", spellcheck: "false" });
  let timer = 0;
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    live.setAttribute("aria-pressed", "false");
  };
  const live = h("button", { type: "button", class: "quiet", id: "live", "aria-pressed": "false", onclick: () => {
    if (timer) {
      stop();
      return;
    }
    begin.value = end.value = "";
    if (!topic.reportValidity()) return;
    live.setAttribute("aria-pressed", "true");
    const refresh = look();
    timer = setInterval(() => document.hidden || refresh(), LIVE_MS);
  } }, "Live tail");
  const field = (name, input) => h("label", { class: "field" }, h("span", {}, name), input);
  const asks = h("div", { class: "bar" });
  const buttons = h("div", { class: "choices", role: "group", "aria-label": "How to look" });
  const results = h("div", { class: "content" });

  const choose = (wanted) => {
    way = wanted;
    show(buttons, WAYS.map(([name, text]) => h("button", { type: "button", id: `way-${name}`, "aria-pressed": String(name === way), onclick: () => choose(name) }, text)));
    show(asks, field("Topic", topic),
      way === "time" ? [field("From", begin), field("To", end), field("With text", text)] : field(way === "key" ? "Key" : "Message id", word),
      h("button", { type: "submit" }, "Search"), way === "time" && live);
    if (timer) stop();
    word.required = way !== "time";
  };
  const look = () => {
    results.replaceChildren();
    const asked = { topic: topic.value.trim(), limit: 50 };
    if (way === "time") Object.assign(asked, { begin: moment(begin.value), end: moment(end.value), text: text.value.trim() });
    else asked[way] = word.value.trim();
    history.replaceState(null, "", `#/messages?topic=${part(asked.topic)}${way === "time" ? "" : `&${way}=${part(asked[way])}`}`);
    const older = [];
    let cursor = null;
    const load = async () => {
      const found = await get("messages", timer ? { ...asked, most: LIVE_MOST } : asked);
      older.length = 0;
      cursor = found.cursor;
      return found;
    };
    const refresh = loader(results, load, (found) => {
      if (!found.messages.length && !cursor) {
        return sheet("", empty("Nothing found", way === "time" ? "The topic has no such message, or it is gone by now." : `No message of the topic has that ${way === "key" ? "key" : "id"}, or it is gone by now.`));
      }
      const place = h("div", { class: "stack" });
      const draw = () => show(place, sheet("", rows([...found.messages, ...older])),
        cursor && !timer && h("div", { class: "bar" }, h("button", { class: "quiet", type: "button", id: "older", onclick: async () => {
          try {
            const more = await get("messages", { ...asked, cursor });
            older.push(...more.messages);
            cursor = more.cursor;
          } catch (error) {
            say(error.message);
          }
          draw();
        } }, "Older"), found.looked > found.messages.length && h("span", { class: "faint" }, `${count(found.looked)} of ${count(found.total)} were looked at`)));
      draw();
      return place;
    });
    return refresh;
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
    stop();
    look();
  } }, buttons, asks, topics), results);
  choose(way);
  if (topic.value) look();
  else results.append(h("section", { class: "panel" }, empty("Which topic?", "Name one, and how to look in it. Looking changes nothing: no group moves.")));
  return { close: stop };
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

function delivery(found) {
  if (!found.groups.length) return h("p", { class: "faint" }, "No group consumes this topic so far.");
  return [
    h("dl", { class: "plain" }, found.groups.map((one) => [
      h("dt", {}, h("a", { href: `#/groups/${part(one.group)}` }, one.group)),
      one.error && h("dd", {}, one.error),
      one.findings.map((finding) => h("dd", {}, badge(finding.code, finding.code === "passed" ? "good" : ""), " ", finding.text, h("p", { class: "faint" }, finding.advice))),
    ])),
    found.total > found.groups.length && h("p", { class: "faint" }, `These are ${found.groups.length} of ${count(found.total)} groups.`),
  ];
}

export function one(root, { name, query }) {
  const topic = query.get("topic") || "";
  root.append(head("Message", { sub: h("span", { class: "mono" }, name), crumb: [topic || "Messages", `#/messages?topic=${part(topic)}`] }));
  const place = h("div", { class: "content" });
  root.append(place);
  const groups = h("div", { class: "content" });
  const explained = panel("Delivery by group", groups);
  loader(groups, () => get(`messages/${part(name)}/groups`, { topic }), delivery);
  loader(place, () => get(`messages/${part(name)}`, { topic }), (message) => h("div", { class: "stack" },
    h("div", { class: "columns" },
      panel("Where and when", facts([
        ["Topic", h("a", { href: `#/topics/${part(message.from)}` }, message.from)],
        ["Queue", `${message.broker} / ${message.queue_id}, offset ${count(message.offset)}`],
        ["Message id", h("span", { class: "mono" }, message.key_id)],
        ["Tag", message.tag ? badge(message.tag) : "none"],
        ["Keys", message.keys.length ? h("span", { class: "badges" }, message.keys.map((key) => badge(key))) : "none"],
        ["Sent", `${time(message.born_ms)} from ${message.born_host}`],
        ["Stored", `${time(message.store_ms)} by ${message.store_host}`],
        ["Retries", count(message.reconsume_times)],
      ])),
      panel("Trace", steps(message.trace))),
    explained,
    panel(`Body, ${bytes(message.size)}`, body(message), message.cut && h("p", { class: "note" }, "This is its beginning.")),
    sheet("Properties", table("Properties", [
      ["Name", (pair) => h("span", { class: "mono" }, pair[0]), "name"],
      ["Value", (pair) => h("span", { class: "mono" }, pair[1])],
    ], Object.entries(message.properties).sort()))));
  return {};
}
