// Draws the page. What goes wrong is said at its top, and noted in data-trouble.

function tell(what) {
  byId("trouble").hidden = false;
  byId("trouble").textContent = `Something on this page could not be drawn: ${what}`;
  document.documentElement.dataset.trouble = what;
}
addEventListener("error", (event) => tell(event.message));
addEventListener("unhandledrejection", (event) => tell(String(event.reason)));

readColors();
darkScheme.addEventListener("change", () => {
  readColors();
  for (const repaint of repaints) repaint();
});
facts();
chosenTokenBar();
for (const draw of [promptSection, logitLensSection, attentionSection, kdaSections, expertsSection]) {
  try {
    draw();
  } catch (error) {
    tell(`${draw.name}: ${error.message}`);
  }
}
selectFromAddress();
addEventListener("hashchange", selectFromAddress);
document.documentElement.dataset.drawn = "true";
