// The token that all pictures mark, -1 for none. It stands in the address behind #, so that a link can name it.

const selection = { token: -1, listeners: [] };

function selectToken(token) {
  const chosen = token === selection.token ? -1 : clamp(token, -1, lastToken);
  if (chosen === selection.token) return;
  selection.token = chosen;
  history.replaceState(null, "", chosen < 0 ? location.pathname + location.search : `#token=${chosen}`);
  for (const listener of selection.listeners) listener();
}

function selectFromAddress() {
  const match = /^#token=(\d{1,6})$/.exec(location.hash);
  if (match && Number(match[1]) <= lastToken && Number(match[1]) !== selection.token) selectToken(Number(match[1]));
}

// The bar at the bottom, from which one goes on to the neighbours.
function chosenTokenBar() {
  const bar = byId("chosen");
  const button = (label, text, act) => el("button", { type: "button", "aria-label": label, onclick: act }, text);
  const name = el("p");
  const before = button("Previous token", "‹", () => selectToken(selection.token - 1));
  const after = button("Next token", "›", () => selectToken(selection.token + 1));
  bar.append(before, name, after, button("Choose no token", "×", () => selectToken(-1)));
  selection.listeners.push(() => {
    bar.hidden = selection.token < 0;
    if (bar.hidden) return;
    before.disabled = selection.token === 0;
    after.disabled = selection.token === lastToken;
    name.replaceChildren(`token ${selection.token} of ${tokens} `, quotedAt(selection.token));
  });
}
