// One box for people, channels, sessions and events.

import { h, id, moment, visible } from "./dom.js";

let last = 0;

export function search({ app, href }) {
  let options = [], active = -1, asked = 0, timer;
  const list = h("div", { class: "found", role: "listbox", id: "found", "aria-label": "Found", hidden: true });
  const field = h("input", {
    id: "search", type: "search", placeholder: "Find a person, a channel, an event", "aria-label": "Find a person, a channel or an event. Press slash.",
    role: "combobox", autocomplete: "off", spellcheck: "false", "aria-expanded": "false", "aria-controls": "found", "aria-autocomplete": "list",
    maxlength: 200,
  });

  function close() {
    list.hidden = true;
    field.setAttribute("aria-expanded", "false");
    field.removeAttribute("aria-activedescendant");
    active = -1;
  }

  function mark(index) {
    active = options.length ? (index + options.length) % options.length : -1;
    options.forEach((option, at) => option.setAttribute("aria-selected", at === active ? "true" : "false"));
    if (active >= 0) {
      field.setAttribute("aria-activedescendant", options[active].id);
      options[active].scrollIntoView({ block: "nearest" });
    }
  }

  function go(to) {
    close();
    field.value = "";
    location.hash = to;
  }

  function option(to, what, note) {
    const element = h("div", { role: "option", id: `found${++last}`, "aria-selected": "false" }, h("span", null, what), h("span", null, note));
    element.dataset.to = to;
    element.addEventListener("mousedown", (event) => event.preventDefault());
    element.addEventListener("click", () => go(to));
    options.push(element);
    return element;
  }

  function draw(found, text) {
    options = [];
    const groups = [
      ["People", (found.people ?? []).map((one) => option(
        href("person", one.user),
        [id(one.user), one.name && one.name !== one.user ? ` ${visible(one.name)}` : ""],
        one.session ?? "device only",
      ))],
      ["Events", (found.events ?? []).map((one) => option(
        href("event", one.event_id), [visible(one.name), " "], `${moment(one.committed_at)}`))],
      ["Channels", (found.channels ?? []).map((one) => option(href("channel", one.channel), id(one.channel), one.definition ?? ""))],
      ["Sessions", (found.sessions ?? []).filter((one) => one.channel).map((one) => option(href("channel", one.channel), id(one.session), one.definition))],
    ].filter(([, elements]) => elements.length);
    const exact = option(href("person", text), ["Person ", id(text)], "by exact id");
    list.replaceChildren(
      ...groups.flatMap(([title, elements]) => [h("div", { class: "group", role: "presentation" }, title), ...elements]),
      h("div", { class: "group", role: "presentation" }, groups.length ? "Or" : "Nothing begins with this. Or"), exact);
    list.hidden = false;
    field.setAttribute("aria-expanded", "true");
    mark(0);
  }

  async function ask() {
    const text = field.value.trim(), mine = ++asked;
    if (!text) return close();
    const found = await app().get("search", { q: text, limit: 6 }).catch(() => ({}));
    if (mine === asked && document.activeElement === field) draw(found, text);
  }

  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(ask, 120);
  });
  field.addEventListener("blur", close);
  field.addEventListener("keydown", async (event) => {
    if (event.key === "ArrowDown") mark(active + 1);
    else if (event.key === "ArrowUp") mark(active - 1);
    else if (event.key === "Escape") close();
    else if (event.key === "Enter") {
      clearTimeout(timer);
      if (list.hidden) await ask();
      if (active >= 0) go(options[active].dataset.to);
    } else return;
    event.preventDefault();
  });
  return h("div", { class: "search" }, field, list);
}
