// A table of any length: only the rows in view exist.

import { h } from "./dom.js";

const ROW = 32;
let last = 0;

// columns: [{ title, width, cell: (row) => text or element, number, wide }]; `wide` ones stay away from narrow screens.
// open: what Enter or a click on a row does.
export class Grid {
  constructor(label, columns, { open, rows = 15 } = {}) {
    this.columns = columns;
    this.open = open;
    this.rows = [];
    this.active = -1;
    this.key = `grid${++last}`;
    this.space = h("div", { class: "space", role: "rowgroup" });
    this.window = h("div", { class: "window", tabindex: 0, role: "grid", "aria-label": label, "aria-rowcount": 1 },
      h("div", { class: "titles", role: "row", "aria-rowindex": 1 }, columns.map((column) => h("span", { role: "columnheader", class: this.kind(column) }, column.title))),
      this.space);
    this.element = h("div", { class: "grid" }, this.window);
    this.element.style.setProperty("--rows", rows);
    this.window.addEventListener("scroll", () => this.draw());
    this.window.addEventListener("keydown", (event) => this.pressed(event));
    this.space.addEventListener("click", (event) => {
      const row = event.target.closest("[role=row]");
      if (row && !event.target.closest("a, button")) this.choose(Number(row.getAttribute("aria-rowindex")) - 2, true);
    });
    this.narrow = matchMedia("(max-width: 820px)");
    this.measure();
    this.narrow.addEventListener("change", () => this.measure());
    new ResizeObserver(() => this.draw()).observe(this.window);
  }

  kind(column) {
    return [column.number && "number", column.wide && "wide"].filter(Boolean).join(" ") || null;
  }

  measure() {
    const widths = this.columns.filter((column) => !(column.wide && this.narrow.matches)).map((column) => column.width ?? "minmax(0, 1fr)");
    this.element.style.setProperty("--columns", widths.join(" "));
  }

  set(rows) {
    this.rows = rows;
    if (this.active >= rows.length) this.active = -1;
    this.window.setAttribute("aria-rowcount", rows.length + 1);
    this.space.style.height = `${rows.length * ROW}px`;
    this.drawn = null;
    this.draw();
  }

  draw() {
    const first = Math.max(0, Math.floor(this.window.scrollTop / ROW) - 8);
    const end = Math.min(this.rows.length, first + Math.ceil((this.window.clientHeight || 480) / ROW) + 16);
    const now = `${first} ${end} ${this.active}`;
    if (this.drawn === now) return;
    this.drawn = now;
    const elements = [];
    for (let index = first; index < end; index++) {
      const element = h("div", {
        role: "row", id: `${this.key}-${index}`, "aria-rowindex": index + 2, "aria-selected": index === this.active ? "true" : null,
        class: [this.open && "opens", index === this.active && "active"].filter(Boolean).join(" ") || null,
      }, this.columns.map((column) => h("span", { role: "gridcell", class: this.kind(column) }, column.cell(this.rows[index], index) ?? "–")));
      element.style.top = `${index * ROW}px`;
      elements.push(element);
    }
    this.space.replaceChildren(...elements);
  }

  choose(index, opens = false) {
    if (!this.rows.length) return;
    this.active = Math.max(0, Math.min(this.rows.length - 1, index));
    const top = this.active * ROW;
    if (top < this.window.scrollTop) this.window.scrollTop = top;
    // The titles stay in view and take a row.
    else if (top + 2 * ROW > this.window.scrollTop + this.window.clientHeight) this.window.scrollTop = top + 2 * ROW - this.window.clientHeight;
    this.draw();
    this.window.setAttribute("aria-activedescendant", `${this.key}-${this.active}`);
    if (opens) this.open?.(this.rows[this.active]);
  }

  pressed(event) {
    if (event.target !== this.window) return;
    const page = Math.max(1, Math.floor(this.window.clientHeight / ROW) - 2);
    const to = {
      ArrowDown: this.active + 1, ArrowUp: this.active - 1, PageDown: this.active + page, PageUp: this.active - page, Home: 0,
      End: this.rows.length - 1,
    }[event.key];
    if (to !== undefined) this.choose(to);
    else if (event.key === "Enter" && this.active >= 0) this.choose(this.active, true);
    else return;
    event.preventDefault();
  }
}
