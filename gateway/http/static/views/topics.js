// Topics: the list with rates, and one with its queues, groups and route.

import { get, part, post, put, remove } from "../api.js";
import { h, show } from "../dom.js";
import { about, bytes, compact, count, rate } from "../format.js";
import { past } from "../past.js";
import { ask, badge, check, confirmDelete, empty, facts, head, list as paged, loader, number, offers, panel, say, sheet, table, text, tiles } from "../parts.js";

export const link = (name) => h("a", { href: `#/topics/${part(name)}` }, name);

const KINDS = [
  ["normal", "Topics"], ["retry", "Retry topics"], ["dead-letters", "Dead letters"],
  ["system", "System topics"], ["all", "All"],
];

const MOST_QUEUES = 1024;

const stored = (topic) => `${compact(topic.messages)} (${about(topic.approx_bytes)})`;

const day = (topic) => `${compact(topic.in_day)} (${bytes(topic.in_bytes_day)})`;

// What a topic is to be, in a dialog.
function setup(topic) {
  const queues = number("edit-queues", topic.queues, 1, MOST_QUEUES);
  const bits = ["read", "write"].map((word) => [word, check(`edit-${word}`, topic.permissions.includes(word))]);
  return {
    fields: [["Queues on each broker", queues], ...bits.map(([word, box]) => [`Clients may ${word}`, box])],
    value: () => ({ queues: queues.valueAsNumber, permissions: bits.filter(([, box]) => box.checked).map(([word]) => word) }),
  };
}

async function create() {
  const name = text("new-name", "", { required: true });
  const { fields, value } = setup({ queues: 8, permissions: ["read", "write"] });
  const act = () => post("topics", { name: name.value.trim(), ...value() });
  if (await ask("New topic", "On every broker of the cluster.", "Create", { fields: [["Name", name], ...fields], act })) {
    location.hash = `#/topics/${part(name.value.trim())}`;
  }
}

async function edit(topic, refresh) {
  const { fields, value } = setup(topic);
  const hint = "With fewer queues than before, messages in the others stay and are not read.";
  if (await ask(`Change ${topic.name}`, hint, "Change", { fields, act: () => put(`topics/${part(topic.name)}`, value()) })) {
    say("Changed");
    refresh();
  }
}

async function destroy(name) {
  const hint = "Its messages are deleted on every broker, with all groups' offsets in it. This cannot be undone.";
  if (await confirmDelete("topic", name, hint, () => remove(`topics/${part(name)}`))) {
    say(`${name} is deleted`);
    location.hash = "#/topics";
  }
}

async function sendTo(name, refresh) {
  const body = h("textarea", { id: "send-body", required: true, spellcheck: "false" });
  const tag = text("send-tag");
  const keys = text("send-keys");
  let sent;
  const act = async () => {
    sent = await post(`topics/${part(name)}/messages`, {
      body: body.value, tag: tag.value.trim(), keys: keys.value.split(/\s+/).filter(Boolean),
    });
  };
  const hint = "All groups of the topic get it, as they get any other message.";
  if (await ask(`Send a message to ${name}`, hint, "Send", { fields: [["Body", body], ["Tag", tag], ["Keys, parted by spaces", keys]], act })) {
    say(`Sent to ${sent.broker} / ${sent.queue_id}, offset ${count(sent.offset)}`);
    refresh();
  }
}

export function list(root) {
  const make = h("button", { type: "button", id: "new", hidden: true, onclick: create }, "New topic");
  root.append(head("Topics", { end: make }));
  offers(make);
  const refresh = paged(root, {
    search: "Search by name", choice: KINDS,
    sorts: [["in_rate", "In"], ["in_bytes_rate", "Bytes in"], ["in_day", "Last day"], ["in_bytes_day", "Bytes of the last day"], ["messages", "Messages"], ["approx_bytes", "Bytes stored"]],
    total: (sums) => `${compact(sums.messages)} messages with ${about(sums.approx_bytes)} stored, ${rate(sums.in_rate)} and ${bytes(Math.round(sums.in_bytes_rate))}/s in; ${compact(sums.in_day)} with ${bytes(sums.in_bytes_day)} in the last day`,
    load: (asked) => get("topics", asked),
    render: (data, asked) => (data.total
      ? table("Topics", [
        ["Topic", (one) => link(one.name), "name"],
        ["In", (one) => rate(one.in_rate), "right"],
        ["Bytes in", (one) => `${bytes(Math.round(one.in_bytes_rate))}/s`, "right"],
        ["Last day", day, "right"],
        ["Messages", stored, "right"],
        ["Queues", (one) => count(one.queues), "right"],
        ["Brokers", (one) => (one.brokers.length > 3 ? `${one.brokers.length} brokers` : one.brokers.join(", "))],
        ["Permissions", (one) => one.permissions.join(", ") || badge("nothing", "warn")],
      ], data.topics)
      : empty(asked.search ? "No topic has that in its name" : "No topics yet",
        asked.search ? "Try a part of the name." : "A topic is made by the first message that is sent to it.")),
  });
  return { refresh };
}

export function one(root, { name }) {
  const lines = past("Messages written a second", "topic", name, [["in", "in", "--accent"]]);
  const changes = h("div", { class: "bar" });
  root.append(head(name, { crumb: ["Topics", "#/topics"], end: h("div", { class: "bar" },
    changes,
    h("a", { class: "button quiet", href: `#/routes/${part(name)}` }, "Route"),
    h("a", { class: "button", href: `#/messages?topic=${part(name)}` }, "Messages")) }));
  const place = h("div", { class: "content" });
  root.append(place, lines.element);
  const refresh = loader(place, () => get(`topics/${part(name)}`), (topic) => {
    lines.refresh();
    show(changes, [
      ["send", "Send a message", () => sendTo(name, refresh)],
      ["update", "Change", () => edit(topic, refresh)],
      ["delete", "Delete", () => destroy(name)],
    ].filter(([what]) => topic.offered.includes(what)).map(([what, label, onclick]) => h("button", { type: "button", class: "quiet", id: `do-${what}`, onclick }, label)));
    const ever = topic.spans.reduce((total, queue) => total + queue.end, 0);
    const most = Math.max(1, ...topic.spans.map((queue) => queue.end - queue.first));
    const attributes = Object.entries(topic.attributes).map(([key, value]) => `${key}=${value}`);
    return h("div", { class: "stack" },
      tiles([["Messages", stored(topic)], ["Total written", compact(ever)], ["In", rate(topic.in_rate)], ["Bytes in", `${bytes(Math.round(topic.in_bytes_rate))}/s`], ["Last day", day(topic)], ["Queues", count(topic.spans.length)]]),
      h("div", { class: "columns" },
        panel("Set-up", facts([
          ["Kind", topic.kind],
          ["Permissions", topic.permissions.join(", ") || "nothing"],
          ["Queues", `${topic.queues} to write, ${topic.read_queues} to read, on each broker`],
          ["Brokers", topic.brokers.join(", ")],
          ["In order", topic.order ? "yes" : "no"],
          ["Attributes", attributes.join(", ") || "none"],
        ])),
        panel("Groups that consume it", topic.groups.length
          ? h("ul", { class: "plain" }, topic.groups.map((group) => h("li", {}, h("a", { href: `#/groups/${part(group.name)}` }, group.name), " ",
            group.lag === null ? badge("lag not shown") : badge(group.lag ? `lag ${count(group.lag)} (${about(group.approx_lag_bytes)})` : "lag 0", group.lag ? "warn" : "good"))))
          : h("p", { class: "faint" }, "None has consumed it so far."))),
      sheet("Queues", table("Queues", [
        ["Queue", (queue) => `${queue.broker} / ${queue.queue_id}`, "name"],
        ["Partition", (queue) => queue.partition ?? "–", "right"],
        ["First offset", (queue) => count(queue.first), "right"],
        ["End", (queue) => count(queue.end), "right"],
        ["Messages", (queue) => [meter((queue.end - queue.first) / most), count(queue.end - queue.first)], "right"],
      ], topic.spans)));
  });
  return { refresh, close: lines.close };
}

function meter(share) {
  const filled = h("i");
  filled.style.width = `${Math.round(share * 100)}%`;
  return h("span", { class: "meter", "aria-hidden": "true" }, filled);
}
