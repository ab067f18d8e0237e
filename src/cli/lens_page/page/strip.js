// Small multiples, one a layer or a head, that are a choice too: what is pressed is drawn large beside them.

// @param items anything. @param name item -> caption. @param picture item -> { rows, cols, shade }
// @param choose called with an index of what was pressed
// @returns the node, how to press one, and how to let go of all when the node is replaced
function strip(label, items, { name, picture, choose, shape }) {
  const paints = [];
  const buttons = items.map((item) => {
    const canvas = el("canvas", { "aria-hidden": "true" });
    const paint = () => {
      const { rows, cols, shade } = picture(item);
      bitmapOf(rows, cols, shade, canvas);
      canvas.classList.toggle("coarse", Math.max(rows, cols) <= 96);  // few cells: with sharp edges
    };
    repaints.add(paint);
    paints.push(paint);
    paint();
    return el("button", { type: "button", class: "multiple" }, canvas, el("span", {}, name(item)));
  });
  const press = chooser(buttons, (index) => choose(index));
  const node = el("div", { class: `strip ${shape}`, role: "group", "aria-label": label }, ...buttons);
  return { node, press, forget: () => paints.forEach((paint) => repaints.delete(paint)) };
}
