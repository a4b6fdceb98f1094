// Clients that are connected: consumers and producers, by group.

import { get, part } from "../api.js";
import { h } from "../dom.js";
import { count, rate, span } from "../format.js";
import { plot } from "../plot.js";
import { badge, empty, head, list as paged, loader, panel, sheet, table } from "../parts.js";

const KINDS = [["consumers", "Consumers"], ["producers", "Producers"]];

export function members(clients, group) {
  return h("ul", { class: "plain" }, clients.map((one) => h("li", {},
    group ? h("a", { class: "mono", href: `#/clients/${part(one.id)}?group=${part(group)}` }, one.id) : h("span", { class: "mono" }, one.id), " ",
    badge(`${one.language} ${one.version}`), h("br"),
    h("span", { class: "faint" }, `${one.address}${one.seen_ms ? `, heard ${span(Date.now() - one.seen_ms)} ago` : ""}`))));
}

export function wants(subscriptions) {
  return h("ul", { class: "plain" }, subscriptions.map((one) => h("li", {},
    h("a", { href: `#/topics/${part(one.topic)}` }, one.topic), " ",
    h("code", {}, one.expression), one.type && one.type !== "TAG" ? [" ", badge(one.type)] : null)));
}

export function view(root) {
  root.append(head("Clients", { sub: "Connected now, as their heartbeats say" }));
  const refresh = paged(root, {
    search: "Search by group", choice: KINDS,
    load: (asked) => get("clients", asked),
    render: (data, asked) => {
      const consumers = asked.kind === "consumers";
      if (!data.groups.length) {
        return empty(`No ${asked.kind} are connected${asked.search ? " in such a group" : ""}`,
          consumers && data.total > asked.limit ? "None in the groups of this page; there are more." : "They appear with their first heartbeat.");
      }
      return table("Clients", [
        ["Group", (one) => (consumers ? h("a", { href: `#/groups/${part(one.group)}` }, one.group) : h("strong", {}, one.group)), "name"],
        ["Clients", (one) => members(one.members, consumers && one.group)],
        ...(consumers ? [["Subscriptions", (one) => wants(one.subscriptions)], ["Consume mode", (one) => [one.type, one.model].filter(Boolean).join(", ")]] : []),
      ], data.groups);
    },
  });
  return { refresh };
}

// One consumer: its queues, its speed, and what its threads do now.
export function one(root, { name, query }) {
  const group = query.get("group") || "";
  root.append(head(name, { crumb: [group || "Clients", group ? `#/groups/${part(group)}` : "#/clients"], sub: "What the consumer says of itself, when asked" }));
  const place = h("div", { class: "content" });
  const plots = queries(h("div", { class: "content" }));
  root.append(plots.element, place);
  const refresh = loader(place, () => get(`clients/${part(name)}`, { group }), (client) => {
    plots.set(client.queries || []);
    if (!client.answers) return h("p", { class: "note" }, "It is connected and does not answer: see whether its process hangs.");
    if (!client.queues) return sheet("", empty("It says nothing of itself", "It is gone, or one of the clients that do not: C++ and Python's over gRPC."));
    return h("div", { class: "stack" },
      sheet("Queues that it reads", client.queues.length ? table("Queues that it reads", [
        ["Topic", (queue) => h("a", { href: `#/topics/${part(queue.topic)}` }, queue.topic), "name"],
        ["Queue", (queue) => `${queue.broker} / ${queue.queue_id}`],
        ["Committed", (queue) => count(queue.committed), "right"],
        ["Got, not done", (queue) => count(queue.cached), "right"],
      ], client.queues) : empty("It reads no queue", "The group's others read them all, or it has just started.")),
      client.topics.length ? sheet("The last minute", table("The last minute", [
        ["Topic", (topic) => topic.topic, "name"],
        ["Pulled", (topic) => rate(topic.pulled_per_s), "right"],
        ["Done", (topic) => rate(topic.done_per_s), "right"],
        ["Failed", (topic) => rate(topic.failed_per_s), "right"],
        ["A call took", (topic) => `${topic.consume_ms.toFixed(1)} ms`, "right"],
      ], client.topics)) : null,
      panel("Threads", client.stack ? h("pre", { class: "body", tabindex: "0" }, client.stack) : h("p", { class: "faint" }, "It gives no stack traces.")));
  });
  return { refresh, close: plots.close };
}

// What the queries of Spark do that a consumer runs: two plots each, which stay.
function queries(element) {
  const shown = new Map();
  const made = (name) => {
    const places = [h("div", { class: "plot" }), h("div", { class: "plot" })];
    element.append(h("section", { class: "panel" }, h("header", {}, h("h2", {}, `Query ${name}`), h("span", { class: "faint" }, "its last batches")), places));
    return [
      plot(places[0], [["Rows in", "--accent"], ["Rows out", "--good"], ["Lag", "--warn", "right"]]),
      plot(places[1], [["Batch, ms", "--accent"]]),
    ];
  };
  return {
    element,
    set(found) {
      for (const { name, batches } of found) {
        if (!batches.length) continue;
        if (!shown.has(name)) shown.set(name, made(name));
        const [rows, took] = shown.get(name);
        const of = (member) => batches.map((one) => one[member]);
        rows.set(of("ended_ms"), of("rows_in"), of("rows_out"), of("lag"));
        took.set(of("ended_ms"), of("batch_ms"));
      }
    },
    close: () => [...shown.values()].flat().forEach((one) => one.close()),
  };
}
