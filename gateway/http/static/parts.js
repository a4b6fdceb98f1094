// What views are made of: heads, tables, pages of lists, and how nothing looks.

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

/** Fill a place with what is loaded; what was there stays when a later load fails. */
export function loader(place, load, render) {
  let latest = 0;
  let filled = false;
  const note = h("div", { class: "content" });
  const content = h("div", { class: "content" });
  const refresh = async () => {
    const mine = ++latest;
    try {
      const data = await load();
      if (mine !== latest) return;
      show(content, render(data));
      show(note);
      filled = true;
    } catch (error) {
      if (mine !== latest) return;
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

/** A list with a search, perhaps a choice, and pages. */
export function list(root, { search, choice, load, render }) {
  const asked = { search: "", offset: 0, limit: 50, ...(choice ? { kind: choice[0][0] } : {}) };
  let refresh = () => {};
  let typed;
  const change = (changes) => {
    Object.assign(asked, { offset: 0 }, changes);
    refresh();
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
    choice && h("label", { class: "field small" }, h("span", {}, "Show"),
      h("select", { onchange: (event) => change({ kind: event.target.value }) },
        choice.map(([value, text]) => h("option", { value }, text))))));
  const place = h("div");
  root.append(place);
  refresh = loader(place, () => load(asked), (data) => {
    const last = Math.min(data.offset + asked.limit, data.total);
    return h("section", { class: "panel flush" },
      render(data, asked),
      data.total > asked.limit && h("div", { class: "pager" },
        h("button", { class: "quiet", id: "before", type: "button", disabled: data.offset === 0,
          onclick: () => change({ offset: Math.max(0, data.offset - asked.limit) }) }, "Previous"),
        h("span", {}, `${count(data.offset + 1)} to ${count(last)} of ${count(data.total)}`),
        h("button", { class: "quiet", id: "after", type: "button", disabled: last >= data.total,
          onclick: () => change({ offset: data.offset + asked.limit }) }, "Next")));
  });
  return refresh;
}
