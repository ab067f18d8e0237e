// What the colours of a picture mean.

// @param marks [part of the scale, label] in their order
function legend(title, marks) {
  const strip = el("canvas", { "aria-hidden": "true" });
  const paint = () => bitmapOf(1, 256, (_, col) => col / 255, strip);
  repaints.add(paint);
  paint();
  const labels = el("div", { class: "labels" });
  const figure = el("figure", { class: "legend", role: "img" }, el("figcaption", {}, title), strip, labels);
  relabel(figure, title, marks);
  return figure;
}

function relabel(figure, title, marks) {
  const labels = marks.map(([part, text]) => {
    const label = el("span", {}, text);
    label.style.left = `${part * 100}%`;
    return label;
  });
  figure.querySelector(".labels").replaceChildren(...labels);
  figure.setAttribute("aria-label", `Colours: ${title}; ${marks.map(([, text]) => text).join(", ")}`);
}
