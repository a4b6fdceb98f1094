// Topics: the list with rates, and one with its queues, groups and route.

import { get, part } from "../api.js";
import { h } from "../dom.js";
import { compact, count, rate } from "../format.js";
import { badge, empty, facts, head, list as paged, loader, panel, sheet, table, tiles } from "../parts.js";

export const link = (name) => h("a", { href: `#/topics/${part(name)}` }, name);

const KINDS = [
  ["normal", "Topics"], ["retry", "Retry topics"], ["dead-letters", "Dead letters"],
  ["system", "System topics"], ["all", "All"],
];

export function list(root) {
  root.append(head("Topics"));
  const refresh = paged(root, {
    search: "Search by name", choice: KINDS,
    load: (asked) => get("topics", asked),
    render: (data, asked) => (data.total
      ? table("Topics", [
        ["Topic", (one) => link(one.name), "name"],
        ["In", (one) => rate(one.in_rate), "right"],
        ["Queues", (one) => count(one.queues), "right"],
        ["Brokers", (one) => (one.brokers.length > 3 ? `${one.brokers.length} brokers` : one.brokers.join(", "))],
        ["Clients may", (one) => one.permissions.join(", ") || badge("nothing", "warn")],
      ], data.topics)
      : empty(asked.search ? "No topic has that in its name" : "No topics yet",
        asked.search ? "Try a part of the name." : "A topic is made by the first message that is sent to it.")),
  });
  return { refresh };
}

export function one(root, { name }) {
  root.append(head(name, { crumb: ["Topics", "#/topics"], end: h("div", { class: "bar" },
    h("a", { class: "button quiet", href: `#/routes/${part(name)}` }, "Route"),
    h("a", { class: "button", href: `#/messages?topic=${part(name)}` }, "Messages")) }));
  const place = h("div", { class: "content" });
  root.append(place);
  const refresh = loader(place, () => get(`topics/${part(name)}`), (topic) => {
    const stored = topic.spans.reduce((total, queue) => total + queue.end - queue.first, 0);
    const ever = topic.spans.reduce((total, queue) => total + queue.end, 0);
    const most = Math.max(1, ...topic.spans.map((queue) => queue.end - queue.first));
    const attributes = Object.entries(topic.attributes).map(([key, value]) => `${key}=${value}`);
    return h("div", { class: "stack" },
      tiles([["Messages", compact(stored)], ["Ever stored", compact(ever)], ["In", rate(topic.in_rate)], ["Queues", count(topic.spans.length)]]),
      h("div", { class: "columns" },
        panel("Set-up", facts([
          ["Kind", topic.kind],
          ["Clients may", topic.permissions.join(", ") || "nothing"],
          ["Queues", `${topic.queues} to write, ${topic.read_queues} to read, on each broker`],
          ["Brokers", topic.brokers.join(", ")],
          ["In order", topic.order ? "yes" : "no"],
          ["Attributes", attributes.join(", ") || "none"],
        ])),
        panel("Groups that consume it", topic.groups.length
          ? h("ul", { class: "plain" }, topic.groups.map((group) => h("li", {}, h("a", { href: `#/groups/${part(group)}` }, group))))
          : h("p", { class: "faint" }, "None has consumed it so far."))),
      sheet("Queues", table("Queues", [
        ["Queue", (queue) => `${queue.broker} / ${queue.queue_id}`, "name"],
        ["Partition", (queue) => queue.partition ?? "–", "right"],
        ["First offset", (queue) => count(queue.first), "right"],
        ["End", (queue) => count(queue.end), "right"],
        ["Messages", (queue) => [meter((queue.end - queue.first) / most), count(queue.end - queue.first)], "right"],
      ], topic.spans)));
  });
  return { refresh };
}

function meter(share) {
  const filled = h("i");
  filled.style.width = `${Math.round(share * 100)}%`;
  return h("span", { class: "meter", "aria-hidden": "true" }, filled);
}
