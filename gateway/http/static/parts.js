// What views are made of: heads, tables, pages of lists, and how nothing looks.

import { get } from "./api.js";
import { h, s, show } from "./dom.js";
import { count } from "./format.js";

export function head(title, { sub, crumb, end } = {}) {
  document.title = `${title} · Ropeway`;
  return h("div", { class: "head" },
    h("div", {},
      crumb && h("p", { class: "crumb" }, h("a", { href: crumb[1] }, `‹ ${crumb[0]}`)),
      h("h1", {}, title),
      sub && h("p", { class: "sub" }, sub)),
    end);
}

export function panel(title, ...children) {
  return h("section", { class: "panel" }, h("header", {}, h("h2", {}, title)), children);
}

/** A panel that a table fills to its edges. */
export function sheet(title, ...children) {
  return h("section", { class: "panel flush" },
    title && h("header", {}, h("h2", {}, title)), children);
}

export function tiles(facts) {
  return h("dl", { class: "tiles" }, facts.map(([name, value, mark]) =>
    h("div", { class: `tile ${mark || ""}` }, h("dt", {}, name), h("dd", {}, value))));
}

export function facts(pairs) {
  return h("dl", { class: "facts" }, pairs.map(([name, value]) => [h("dt", {}, name), h("dd", {}, value)]));
}

export const badge = (text, mark = "") => h("span", { class: `badge ${mark}` }, text);

/** A table; columns are [label, cell of a row, class]. */
export function table(label, columns, rows) {
  return h("div", { class: "scroll", role: "region", "aria-label": label, tabindex: "0" },
    h("table", { class: "rows" },
      h("caption", { class: "hidden" }, label),
      h("thead", {}, h("tr", {}, columns.map(([name, , kind]) => h("th", { scope: "col", class: kind }, name)))),
      h("tbody", {}, rows.map((row) => h("tr", {}, columns.map(([name, cell, kind]) =>
        h("td", { class: kind, "data-label": name }, cell(row))))))));
}

export function empty(title, hint) {
  return h("div", { class: "state" },
    s("svg", { viewBox: "0 0 72 48", "aria-hidden": "true" },
      s("path", { d: "M2 14 70 4", stroke: "currentColor", "stroke-width": "2.5", "stroke-linecap": "round" }),
      s("path", { d: "M36 9v9", stroke: "currentColor", "stroke-width": "2.5" }),
      s("rect", { x: "22", y: "18", width: "28", height: "22", rx: "7", fill: "none", stroke: "currentColor", "stroke-width": "2.5" }),
      s("path", { d: "M28 24h6v7h-6zM38 24h6v7h-6z", fill: "currentColor" })),
    h("strong", {}, title), hint && h("p", {}, hint));
}

export function trouble(error, again) {
  return h("div", { class: "trouble", role: "alert" },
    h("p", {}, h("strong", {}, "That did not work. "), error.message),
    again && h("button", { class: "quiet", type: "button", onclick: again }, "Try again"));
}

export const loading = () => h("div", { class: "loading", role: "status" }, h("span", { class: "hidden" }, "Loading"));

/** A short message that goes by itself. */
export function say(text) {
  const place = document.getElementById("said");
  show(place, h("p", {}, text));
  setTimeout(() => place.replaceChildren(), 6000);
}

/** A question in a dialog, perhaps with fields [label, input]; whether the answer is yes.
 *
 * `act` does what was answered; while it fails, the dialog stays and says why.
 */
export function ask(question, hint, action, { fields = [], act } = {}) {
  return new Promise((done) => {
    let yes = false;
    const note = h("div", { class: "content" });
    const button = h("button", { type: "submit" }, action);
    const submit = async (event) => {
      event.preventDefault();
      button.disabled = true;
      try {
        if (act) await act();
        yes = true;
        box.close();
      } catch (error) {
        show(note, trouble(error));
      }
      button.disabled = false;
    };
    const box = h("dialog", { "aria-labelledby": "question", onclose: () => {
      box.remove();
      done(yes);
    } }, h("form", { onsubmit: submit },
      h("h2", { id: "question" }, question),
      hint && h("p", { class: "faint" }, hint),
      note,
      fields.map(([label, input]) => (input.type === "checkbox"
        ? h("label", { class: "check" }, input, h("span", {}, label))
        : h("label", { class: "field" }, h("span", {}, label), input))),
      h("div", { class: "bar" }, h("button", { class: "quiet", type: "button", onclick: () => box.close() }, "Cancel"), button)));
    document.body.append(box);
    box.showModal();
  });
}

export const confirm = (question, hint, action) => ask(question, hint, action);

/** Ask to delete something for good: its name has to be typed. */
export function confirmDelete(kind, name, hint, act) {
  const typed = h("input", { id: "typed", required: true, autocomplete: "off", spellcheck: "false", oninput: () =>
    typed.setCustomValidity(typed.value.trim() === name ? "" : `Type ${name}`) });
  typed.setCustomValidity(`Type ${name}`);
  return ask(`Delete the ${kind} ${name}?`, hint, "Delete", { fields: [[`Type ${name} to delete it`, typed]], act });
}

export const text = (id, value = "", more = {}) => h("input", { id, value, autocomplete: "off", spellcheck: "false", ...more });
export const number = (id, value, min, max) => h("input", { id, type: "number", value, min, max, required: true });
export const check = (id, checked) => h("input", { id, type: "checkbox", checked });

/** Fill a place with what is loaded; what was there stays when a later load fails. */
export function loader(place, load, render) {
  let asked = 0;
  let least = 0;
  let filled = false;
  const note = h("div", { class: "content" });
  const content = h("div", { class: "content" });
  // Each answer is shown that is newer than what is there: the next look may be asked
  // for before a slow gateway answers this one. `anew` drops answers to other questions.
  const refresh = async (anew) => {
    const mine = ++asked;
    if (anew) least = mine;
    try {
      const data = await load();
      if (mine < least) return;
      least = mine;
      show(content, render(data));
      show(note);
      filled = true;
    } catch (error) {
      if (mine < least) return;
      least = mine;
      console.info(error.message);
      show(note, trouble(error, refresh));
      if (!filled) show(content);
    }
  };
  show(content, loading());
  place.append(note, content);
  refresh();
  return refresh;
}

/** A list with a search, perhaps a choice and columns to sort by, and pages.
 *
 * `sorts` has [column, name]; `total` makes a line of the columns' sums.
 */
export function list(root, { search, choice, sorts, total, load, render }) {
  const asked = { search: "", offset: 0, limit: 50, ...(choice ? { kind: choice[0][0] } : {}), ...(sorts ? { sort: "name" } : {}) };
  const select = (label, options, name) => h("label", { class: "field small" }, h("span", {}, label),
    h("select", { onchange: (event) => change({ [name]: event.target.value }) },
      options.map(([value, text]) => h("option", { value }, text))));
  let refresh = () => {};
  let typed;
  const change = (changes) => {
    Object.assign(asked, { offset: 0 }, changes);
    refresh(true);
  };
  root.append(h("div", { class: "bar", role: "search" },
    h("label", { class: "field" }, h("span", {}, search),
      h("input", {
        type: "search", id: "search", autocomplete: "off", spellcheck: "false",
        oninput: (event) => {
          clearTimeout(typed);
          typed = setTimeout(() => change({ search: event.target.value.trim() }), 200);
        },
      })),
    choice && select("Show", choice, "kind"),
    sorts && select("Sort by", [["name", "Name"], ...sorts], "sort")));
  const place = h("div");
  root.append(place);
  refresh = loader(place, () => load(asked), (data) => {
    const last = Math.min(data.offset + asked.limit, data.total);
    return h("section", { class: "panel flush" },
      render(data, asked),
      total && data.totals && data.total > 0 && h("p", { class: "totals" }, `${count(data.total)} in all: ${total(data.totals)}`),
      data.total > asked.limit && h("div", { class: "pager" },
        h("button", { class: "quiet", id: "before", type: "button", disabled: data.offset === 0,
          onclick: () => change({ offset: Math.max(0, data.offset - asked.limit) }) }, "Previous"),
        h("span", {}, `${count(data.offset + 1)} to ${count(last)} of ${count(data.total)}`),
        h("button", { class: "quiet", id: "after", type: "button", disabled: last >= data.total,
          onclick: () => change({ offset: data.offset + asked.limit }) }, "Next")));
  });
  return refresh;
}

/** Show a button where the page may change something. */
export async function offers(button) {
  try {
    button.hidden = !(await get("session")).writable;
  } catch (error) {
    console.info(error.message);
  }
}
