// Making elements. Text goes in as text nodes alone: nothing of a prompt is ever read as HTML.

function el(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else node.setAttribute(name, value);
  }
  node.append(...children);
  return node;
}

const byId = (id) => document.getElementById(id);

// A group of buttons of which one is pressed. Tab comes to the group once; arrows move in it.
// @param buttons in their order; @param choose called with an index
function chooser(buttons, choose) {
  const press = (index) => {
    buttons.forEach((button, i) => {
      button.setAttribute("aria-pressed", String(i === index));
      button.tabIndex = i === Math.max(index, 0) ? 0 : -1;
    });
  };
  const steps = { ArrowRight: 1, ArrowDown: 1, ArrowLeft: -1, ArrowUp: -1, Home: -Infinity, End: Infinity };
  buttons.forEach((button, i) => {
    button.addEventListener("click", () => choose(i));
    button.addEventListener("keydown", (event) => {
      if (!(event.key in steps) || event.ctrlKey || event.altKey || event.metaKey) return;
      event.preventDefault();
      const to = Math.min(Math.max(i + steps[event.key], 0), buttons.length - 1);
      if (to === i) return;
      choose(to);
      buttons[to].focus();
    });
  });
  press(-1);
  return press;
}

// Runs all that asked for it once before the next frame.
const redraws = new Set();
function redrawSoon(draw) {
  if (redraws.size === 0)
    requestAnimationFrame(() => {
      const due = [...redraws];
      redraws.clear();
      for (const each of due) each();
    });
  redraws.add(draw);
}

// Pictures that must be painted again when the colours of the page change.
const repaints = new Set();
