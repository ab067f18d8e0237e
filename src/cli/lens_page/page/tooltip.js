// The figures of one cell, beside it.

const tooltip = {
  // @param nodes what it says. @param box the cell, in pixels of the window
  show(nodes, box) {
    const node = byId("tooltip");
    node.replaceChildren(...nodes);
    node.hidden = false;
    const { offsetWidth: width, offsetHeight: height } = node;
    const gap = 10;
    const wide = document.documentElement.clientWidth;
    const high = document.documentElement.clientHeight;
    const under = box.bottom + gap + height <= high;
    const over = box.top - gap - height >= 0;
    const top = under ? box.bottom + gap : over ? box.top - gap - height : high - height - gap;
    const left = (box.left + box.right - width) / 2;
    node.style.left = `${clamp(left, 4, Math.max(4, wide - width - 4))}px`;
    node.style.top = `${Math.max(4, top)}px`;
  },
  hide() {
    byId("tooltip").hidden = true;
  },
};

const line = (...children) => el("p", {}, ...children);
const heading = (...children) => el("p", { class: "heading" }, ...children);

// Rows of a text, a bar and a figure.
function barTable(rows) {
  const body = rows.map(([name, part, figure]) => {
    const bar = el("span", { class: "bar" });
    bar.style.width = `${clamp(part, 0, 1) * 100}%`;
    return el("tr", {}, el("td", {}, name), el("td", { class: "bars" }, bar), el("td", { class: "figure" }, figure));
  });
  return el("table", { class: "bar-table" }, el("tbody", {}, ...body));
}
