// Clients that are connected: consumers and producers, by group.

import { get, part } from "../api.js";
import { h } from "../dom.js";
import { span } from "../format.js";
import { badge, empty, head, list as paged, table } from "../parts.js";

const KINDS = [["consumers", "Consumers"], ["producers", "Producers"]];

export function members(clients) {
  return h("ul", { class: "plain" }, clients.map((one) => h("li", {},
    h("span", { class: "mono" }, one.id), " ",
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
        ["Clients", (one) => members(one.members)],
        ...(consumers ? [["Wants", (one) => wants(one.subscriptions)], ["How", (one) => [one.type, one.model].filter(Boolean).join(", ")]] : []),
      ], data.groups);
    },
  });
  return { refresh };
}
