// Waiting: messages for a delivery time, those that come again, and open transactions.

import { get, part, post } from "../api.js";
import { h } from "../dom.js";
import { count, span, time } from "../format.js";
import { ask, empty, head, loader, say, sheet, table } from "../parts.js";

const MOST = 200;

const UNSEEN = "Messages at delay levels are not shown: you may not read SCHEDULE_TOPIC_XXXX.";

const topicLink = (one) => h("a", { href: `#/topics/${part(one.topic)}` }, one.topic);

async function recall(message, refresh) {
  const act = () => post("waiting/recall", { recall_handle: message.recall_handle });
  if (await ask("Take the message back?", `${message.key_id} for ${message.topic} is not delivered then. This cannot be undone.`, "Recall", { act })) {
    say("Recalled");
    refresh();
  }
}

export function view(root) {
  const timed = h("div", { class: "content" });
  const retries = h("div", { class: "content" });
  const open = h("div", { class: "content" });
  root.append(head("Waiting", { sub: "Messages that are delivered later, that come again, or whose transaction is open" }), timed, retries, open);
  const refreshes = [
    loader(timed, async () => {
      const [found, session] = await Promise.all([get("waiting", { limit: MOST }), get("session")]);
      return { ...found, writable: session.writable };
    }, (found) => sheet("Delivered later", found.messages.length
      ? [table("Delivered later", [
        ["Message", (one) => h("span", { class: "mono" }, one.key_id), "name"],
        ["Topic", topicLink],
        ["Due", (one) => time(one.deliver_ms)],
        ["In", (one) => span(one.deliver_ms - Date.now())],
        ["Delay level", (one) => one.delay_level ?? "–", "right"],
        ...(found.writable ? [["Take back", (one) => one.recall_handle && h("button", { type: "button", class: "quiet", "aria-label": `Recall ${one.key_id}`, onclick: () => recall(one, refreshes[0]) }, "Recall")]] : []),
      ], found.messages), found.messages.length === MOST && h("p", { class: "totals" }, `These are the ${MOST} that are due first.`), !found.levels_shown && h("p", { class: "totals" }, UNSEEN)]
      : empty("No message waits for its time", found.levels_shown ? "Messages with a delivery time and messages at a delay level are shown here." : UNSEEN))),
    loader(retries, () => get("retries"), (found) => sheet("Retries", found.groups.length
      ? table("Retries", [
        ["Group", (one) => h("a", { href: `#/groups/${part(one.group)}` }, one.group), "name"],
        ["Messages that come again", (one) => count(one.messages), "right"],
      ], found.groups)
      : empty("No message comes again", "Every group consumed what it got, or gave it up."))),
    loader(open, () => get("transactions", { limit: MOST }), (found) => sheet("Open transactions", found.transactions.length
      ? [table("Open transactions", [
        ["Message", (one) => h("span", { class: "mono" }, one.key_id), "name"],
        ["Topic", (one) => h("a", { href: `#/topics/${part(one.topic)}` }, one.topic)],
        ["Producer group", (one) => one.producer_group],
        ["Since", (one) => time(one.born_ms)],
        ["Times asked", (one) => count(one.checks), "right"],
      ], found.transactions), found.transactions.length === MOST && h("p", { class: "totals" }, `These are ${MOST} of the oldest.`)]
      : empty("No transaction is open", "Producers have committed or rolled back what they prepared."))),
  ];
  return { refresh: () => refreshes.forEach((refresh) => refresh()) };
}
