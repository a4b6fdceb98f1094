// Groups: the list with lags, and one with its lag over time, queue by queue.

import { get, part, post, put, remove } from "../api.js";
import { h, show } from "../dom.js";
import { compact, count, rate } from "../format.js";
import { ask, badge, check, confirm, confirmDelete, empty, head, list as paged, loader, number, offers, panel, say, sheet, table, text, tiles } from "../parts.js";
import { past } from "../past.js";
import { members, wants } from "./clients.js";
import { link as topicLink } from "./topics.js";

const online = (consumers) => (consumers ? badge(`${consumers} online`, "good") : badge("none online"));

// What a group is to be, in a dialog.
function setup(group) {
  const consume = check("edit-consume", group.consume_enable);
  const broadcast = check("edit-broadcast", group.broadcast_enable);
  const retries = number("edit-retries", group.retry_max_times, 0, 1000);
  return {
    fields: [["May consume", consume], ["May broadcast", broadcast], ["Retries at most", retries]],
    value: () => ({ consume_enable: consume.checked, broadcast_enable: broadcast.checked, retry_max_times: retries.valueAsNumber }),
  };
}

async function create() {
  const name = text("new-name", "", { required: true });
  const { fields, value } = setup({ consume_enable: true, broadcast_enable: true, retry_max_times: 16 });
  const act = () => post("groups", { name: name.value.trim(), ...value() });
  if (await ask("New group", "On every broker of the cluster.", "Create", { fields: [["Name", name], ...fields], act })) {
    location.hash = `#/groups/${part(name.value.trim())}`;
  }
}

async function edit(group, refresh) {
  const { fields, value } = setup(group);
  if (await ask(`Change ${group.name}`, "", "Change", { fields, act: () => put(`groups/${part(group.name)}`, value()) })) {
    say("Changed");
    refresh();
  }
}

async function destroy(name) {
  const hint = "Its offsets and its messages that come again are deleted on every broker. This cannot be undone.";
  if (await confirmDelete("group", name, hint, () => remove(`groups/${part(name)}`))) {
    say(`${name} is deleted`);
    location.hash = "#/groups";
  }
}

export function list(root) {
  const make = h("button", { type: "button", id: "new", hidden: true, onclick: create }, "New group");
  root.append(head("Groups", { end: make }));
  offers(make);
  const refresh = paged(root, {
    search: "Search by name",
    sorts: [["lag", "Lag"], ["out_rate", "Out"], ["consumers", "Consumers"]],
    total: (sums) => `lag ${compact(sums.lag)}, ${rate(sums.out_rate)} out, ${count(sums.consumers)} consumers`,
    load: (asked) => get("groups", asked),
    render: (data, asked) => (data.total
      ? table("Consumer groups", [
        ["Group", (one) => h("a", { href: `#/groups/${part(one.name)}` }, one.name), "name"],
        ["Lag", (one) => compact(one.lag), "right"],
        ["Out", (one) => rate(one.out_rate), "right"],
        ["Consumers", (one) => online(one.consumers)],
        ["Topics", (one) => count(one.topics), "right"],
        ["Consume mode", (one) => [one.type, one.model].filter(Boolean).join(", ") || "–"],
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

// Moving the group's offsets in a topic: first what would be moved, then a question.
function mover(name, refresh) {
  const topic = h("select", { id: "move-topic" });
  const to = h("select", { id: "move-to", onchange: () => { at.hidden = to.value !== "time"; } },
    [["latest", "the end: skip all"], ["earliest", "the beginning: read all again"], ["time", "a time"]].map(([value, text]) => h("option", { value }, text)));
  const when = h("input", { id: "move-at", type: "datetime-local", step: "1" });
  const at = h("label", { class: "field", hidden: true }, h("span", {}, "Time"), when);
  const planned = h("div", { class: "content" });
  const ask = (dry_run) => post(`groups/${part(name)}/offsets`, {
    topic: topic.value, dry_run, to: to.value === "time" ? new Date(when.value).getTime() || 0 : to.value,
  });
  const preview = async (event) => {
    event.preventDefault();
    try {
      const found = await ask(true);
      show(planned, found.moved.length ? [table("Offsets that would move", [
        ["Queue", (one) => `${one.broker} / ${one.queue_id}`, "name"],
        ["Now", (one) => count(one.before), "right"],
        ["Then", (one) => count(one.after), "right"],
      ], found.moved), h("div", { class: "bar" }, h("button", { type: "button", id: "move", onclick: move }, "Move"))]
        : h("p", { class: "faint" }, "Nothing would move."));
    } catch (error) {
      say(error.message);
    }
  };
  const move = async () => {
    if (!(await confirm(`Move ${name} in ${topic.value}?`, "Connected consumers follow within seconds. Messages are delivered again, or skipped.", "Move"))) return;
    try {
      const { moved } = await ask(false);
      say(`${count(moved.length)} queues moved`);
    } catch (error) {
      say(error.message);
    }
    show(planned);
    refresh();
  };
  const element = panel("Move offsets", h("form", { class: "bar", onsubmit: preview },
    h("label", { class: "field" }, h("span", {}, "Topic"), topic),
    h("label", { class: "field" }, h("span", {}, "To"), to), at,
    h("button", { type: "submit" }, "Preview")), planned);
  element.hidden = true;
  return {
    element,
    offer(topics, offered) {
      element.hidden = !offered || !topics.length;
      const known = [...topic.options].map((option) => option.value);
      if (String(known) !== String(topics)) show(topic, topics.map((value) => h("option", { value }, value)));
    },
  };
}

export function one(root, { name }) {
  const changes = h("div", { class: "bar" });
  root.append(head(name, { crumb: ["Groups", "#/groups"], end: h("div", { class: "bar" }, changes,
    h("a", { class: "button quiet", href: `#/dead-letters/${part(name)}` }, "Dead letters")) }));
  const top = h("div", { class: "content" });
  const lines = past("Lag over time", "group", name,
    [["lag", "lag", "--accent"], ["out", "consumed a second", "--warn", "right"]],
    ["Last hour", "of all brokers, from the first look at the group"]);
  root.append(top, lines.element);
  const rest = h("div", { class: "content" });
  const moves = mover(name, () => refresh());
  root.append(rest, moves.element);
  const refresh = loader(top, () => get(`groups/${part(name)}`), (group) => {
    moves.offer([...new Set(group.queues.map((queue) => queue.topic))].sort(), group.offered.includes("move"));
    show(changes, [["update", "Change", () => edit(group, refresh)], ["delete", "Delete", () => destroy(name)]]
      .filter(([what]) => group.offered.includes(what)).map(([what, label, onclick]) => h("button", { type: "button", class: "quiet", id: `do-${what}`, onclick }, label)));
    const speed = speeds(group.history);
    lines.set(group.history.map((point) => point[0]), group.history.map((point) => point[1]), speed);
    rest.replaceChildren(details(group));
    lines.refresh();
    return tiles([
      ["Lag", compact(group.queues.reduce((total, queue) => total + queue.lag, 0))],
      ["Consumed", speed.length > 1 ? rate(speed.at(-1)) : "–"],
      ["Consumers", count(group.members.length)],
      ["Deliveries at most", count(group.retry_max_times + 1)],
    ]);
  });
  return { refresh, close: lines.close };
}

function details(group) {
  return h("div", { class: "stack" },
    !group.consume_enable && h("p", { class: "note" }, "Consuming is switched off for this group."),
    h("div", { class: "columns" },
      panel("Consumers", group.members.length ? members(group.members, group.name) : h("p", { class: "faint" }, "Nobody is connected.")),
      panel("Subscriptions", group.subscriptions.length ? wants(group.subscriptions) : h("p", { class: "faint" }, "Nothing, as long as nobody is connected."))),
    sheet("Queues", group.queues.length ? table("Queues", [
      ["Topic", (queue) => topicLink(queue.topic), "name"],
      ["Queue", (queue) => `${queue.broker} / ${queue.queue_id}`],
      ["Committed", (queue) => count(queue.done), "right"],
      ["End", (queue) => count(queue.end), "right"],
      ["Lag", (queue) => (queue.lag ? h("strong", {}, count(queue.lag)) : "0"), "right"],
    ], group.queues) : empty("No offsets yet", "They come with the first messages that the group acknowledges.")));
}
