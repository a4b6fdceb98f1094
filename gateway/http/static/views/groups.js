// Groups: the list with lags, and one with its lag over time, queue by queue.

import { get, part } from "../api.js";
import { h } from "../dom.js";
import { compact, count, rate } from "../format.js";
import { badge, empty, head, list as paged, loader, panel, sheet, table, tiles } from "../parts.js";
import { plot } from "../plot.js";
import { members, wants } from "./clients.js";
import { link as topicLink } from "./topics.js";

const online = (consumers) => (consumers ? badge(`${consumers} online`, "good") : badge("nobody online"));

export function list(root) {
  root.append(head("Groups"));
  const refresh = paged(root, {
    search: "Search by name",
    load: (asked) => get("groups", asked),
    render: (data, asked) => (data.total
      ? table("Consumer groups", [
        ["Group", (one) => h("a", { href: `#/groups/${part(one.name)}` }, one.name), "name"],
        ["Lag", (one) => compact(one.lag), "right"],
        ["Consumers", (one) => online(one.consumers)],
        ["Topics", (one) => count(one.topics), "right"],
        ["How", (one) => [one.type, one.model].filter(Boolean).join(", ") || "–"],
      ], data.groups)
      : empty(asked.search ? "No group has that in its name" : "No groups yet",
        asked.search ? "Try a part of the name." : "A group is made when it first consumes.")),
  });
  return { refresh };
}

// Messages done a second, between two points of the history.
function speeds(history) {
  return history.map(([at, , done], index) => {
    if (!index) return null;
    const [before, , was] = history[index - 1];
    return Math.max(0, ((done - was) * 1000) / (at - before));
  });
}

export function one(root, { name }) {
  root.append(head(name, { crumb: ["Groups", "#/groups"], end: h("a", { class: "button quiet", href: `#/dead-letters/${part(name)}` }, "Dead letters") }));
  const top = h("div", { class: "content" });
  const place = h("div", { class: "plot" });
  const lines = plot(place, [["lag", "--accent"], ["done a second", "--warn"]]);
  root.append(top, h("section", { class: "panel" },
    h("header", {}, h("h2", {}, "Lag over time"), h("span", { class: "faint" }, "kept for an hour, from the first look at the group")), place));
  const rest = h("div", { class: "content" });
  root.append(rest);
  const refresh = loader(top, () => get(`groups/${part(name)}`), (group) => {
    const speed = speeds(group.history);
    lines.set(group.history.map((point) => point[0]), group.history.map((point) => point[1]), speed);
    rest.replaceChildren(details(group));
    return tiles([
      ["Lag", compact(group.queues.reduce((total, queue) => total + queue.lag, 0))],
      ["Done", speed.length > 1 ? rate(speed.at(-1)) : "–"],
      ["Consumers", count(group.members.length)],
      ["Tries of a message", count(group.retry_max_times + 1)],
    ]);
  });
  return { refresh, close: lines.close };
}

function details(group) {
  return h("div", { class: "stack" },
    !group.consume_enable && h("p", { class: "note" }, "This group may not consume: its set-up says so."),
    h("div", { class: "columns" },
      panel("Consumers", group.members.length ? members(group.members) : h("p", { class: "faint" }, "Nobody is connected.")),
      panel("Wants", group.subscriptions.length ? wants(group.subscriptions) : h("p", { class: "faint" }, "Nothing, as long as nobody is connected."))),
    sheet("Queues", group.queues.length ? table("Queues", [
      ["Topic", (queue) => topicLink(queue.topic), "name"],
      ["Queue", (queue) => `${queue.broker} / ${queue.queue_id}`],
      ["Done", (queue) => count(queue.done), "right"],
      ["End", (queue) => count(queue.end), "right"],
      ["Lag", (queue) => (queue.lag ? h("strong", {}, count(queue.lag)) : "0"), "right"],
    ], group.queues) : empty("No offsets yet", "They come with the first messages that the group has done.")));
}
