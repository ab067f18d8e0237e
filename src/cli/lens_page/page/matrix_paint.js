// Painting the part of a matrix that is in view.

// @param view { x, y, width, height } what of the whole is in view. @param geometry as layoutMatrix gives it
// @param cells a picture of one pixel a cell. @param cursor { row, col } or null
function paintMatrix(context, spec, geometry, view, cells, cursor) {
  const g = geometry;
  const span = (begin, size, offset, room, most) => [
    Math.max(0, Math.floor(offset / size)),
    Math.min(most, Math.ceil((offset + room) / size)),
  ];
  const [col0, col1] = span(g.left, g.width, view.x, view.width - g.left, spec.cols);
  const [row0, row1] = span(g.top, g.height, view.y, view.height - g.top, spec.rows);
  const place = {
    x: (col) => g.left + col * g.width - view.x,
    y: (row) => g.top + row * g.height - view.y,
    col0, col1, row0, row1,
  };
  context.clearRect(0, 0, view.width, view.height);
  context.textBaseline = "middle";
  context.direction = "ltr";
  context.save();
  context.beginPath();
  context.rect(g.left, g.top, view.width - g.left, view.height - g.top);
  context.clip();
  if (spec.axis) {
    paintBars(context, spec, g, place, cursor);
  } else {
    paintCells(context, spec, g, place, cells);
    paintOutlines(context, spec, g, place, cursor);
  }
  context.restore();
  if (spec.axis) paintAxis(context, spec, g, place);
  if (g.head !== "none") paintColumnNames(context, spec, g, view, place, cursor);
  if (spec.rowNames) paintRowNames(context, spec, g, view, place, cursor);
}

function paintCells(context, spec, g, place, cells) {
  const { x, y, col0, col1, row0, row1 } = place;
  context.imageSmoothingEnabled = false;
  const [cols, rows] = [col1 - col0, row1 - row0];
  context.drawImage(cells, col0, row0, cols, rows, x(col0), y(row0), cols * g.width, rows * g.height);
  context.fillStyle = inks.surface;
  if (g.width >= 9)
    for (let col = col0; col <= col1; ++col) context.fillRect(Math.round(x(col)) - 1, y(row0), 1, rows * g.height);
  if (g.height >= 9)
    for (let row = row0; row <= row1; ++row) context.fillRect(x(col0), Math.round(y(row)) - 1, cols * g.width, 1);
  if (!spec.text || g.width < 26) {
    if (spec.mark && g.width >= 4) paintMarks(context, spec, g, place, Math.min(g.width * 0.6, 5));
    return;
  }
  context.font = `12px ${inks.font}`;
  context.textAlign = "left";
  for (let row = row0; row < row1; ++row)
    for (let col = col0; col < col1; ++col) {
      const level = levelOf(spec.shade(row, col));
      if (level < 0) continue;
      context.fillStyle = ramp.ink[level];
      context.fillText(fit(spec.text(row, col), g.width - 11, "12px"), x(col) + 6, y(row) + g.height / 2);
    }
  if (spec.mark) paintMarks(context, spec, g, place, 7);
}

// A corner of a cell, in the colour of its text.
function paintMarks(context, spec, g, { x, y, col0, col1, row0, row1 }, size) {
  for (let row = row0; row < row1; ++row)
    for (let col = col0; col < col1; ++col) {
      if (!spec.mark(row, col)) continue;
      const right = Math.round(x(col + 1)) - (g.width >= 9 ? 1 : 0);
      context.fillStyle = ramp.ink[levelOf(spec.shade(row, col))];
      context.beginPath();
      context.moveTo(right, y(row));
      context.lineTo(right - size, y(row));
      context.lineTo(right, y(row) + size);
      context.fill();
    }
}

const kBarLevel = 150;  // of the ramp: neither end can be mistaken for paper

function paintBars(context, spec, g, { x, y, col0, col1 }, cursor) {
  const gap = g.width >= 5 ? 1 : 0;
  const bottom = y(1);
  for (let col = col0; col < col1; ++col) {
    const isCursor = cursor && cursor.col === col;
    const height = Math.max(spec.shade(0, col) * (g.height - 2), isCursor ? 4 : 0);
    context.fillStyle = isCursor ? inks.accent : ramp.css[kBarLevel];
    const left = Math.round(x(col));
    context.fillRect(left, bottom - height, Math.max(1, Math.round(x(col + 1)) - left - gap), height);
  }
  context.fillStyle = inks.line;
  context.fillRect(x(col0), bottom - 1, x(col1) - x(col0), 1);
  context.strokeStyle = inks.ink;
  context.setLineDash([4, 3]);
  context.lineWidth = 1;
  const level = Math.round(bottom - spec.axis.level * (g.height - 2)) + 0.5;
  context.beginPath();
  context.moveTo(x(col0), level);
  context.lineTo(x(col1), level);
  context.stroke();
  context.setLineDash([]);
}

// What the ends of the longest bar and the line stand for.
function paintAxis(context, spec, g, { y }) {
  const { most, level, levelName } = spec.axis;
  const height = (part) => y(1) - part * (g.height - 2);
  context.font = `11px ${inks.font}`;
  context.textAlign = "right";
  context.fillStyle = inks.muted;
  context.fillText(most, g.left - 6, height(1) + 5);
  if (height(level) - height(1) < 18) return;
  context.fillStyle = inks.ink;
  context.fillText(levelName, g.left - 6, height(level));
}

// What is chosen, and where the pointer or the keys stand.
function paintOutlines(context, spec, g, { x, y }, cursor) {
  const outline = (left, top, width, height, color) => {
    context.lineWidth = 4;
    context.strokeStyle = inks.surface;
    context.strokeRect(left, top, width, height);
    context.lineWidth = 2;
    context.strokeStyle = color;
    context.strokeRect(left, top, width, height);
  };
  const col = spec.chosenCol ? spec.chosenCol() : -1;
  const row = spec.chosenRow ? spec.chosenRow() : -1;
  if (col >= 0) outline(Math.round(x(col)) - 0.5, y(0) + 1, Math.max(g.width, 2), g.height * spec.rows - 2, inks.accent);
  if (row >= 0) outline(x(0) + 1, Math.round(y(row)) - 0.5, g.width * spec.cols - 2, Math.max(g.height, 2), inks.accent);
  if (cursor) outline(x(cursor.col), y(cursor.row), Math.max(g.width, 3) - 1, Math.max(g.height, 3) - 1, inks.ink);
}

function paintColumnNames(context, spec, g, view, { x, col0, col1 }, cursor) {
  const chosen = spec.chosenCol ? spec.chosenCol() : -1;
  const color = (col) => (col === chosen ? inks.accent : cursor && cursor.col === col ? inks.ink : inks.muted);
  context.save();
  context.beginPath();
  context.rect(g.left, 0, view.width - g.left, g.top);
  context.clip();
  const every = g.head === "ticks" ? step(g.width, spec.columns.room ?? 34) : 1;
  for (let col = Math.floor(col0 / every) * every; col < col1; col += every) {
    context.fillStyle = color(col);
    const middle = x(col) + g.width / 2;
    if (g.head === "flat") {
      context.textAlign = "left";
      context.font = `10px ${inks.font}`;
      context.fillText(spec.columns.number(col), x(col) + 6, 9);
      context.font = `600 12px ${inks.font}`;
      if (col !== chosen) context.fillStyle = inks.ink;
      context.fillText(fit(spec.columns.name(col), g.width - 9, "600 12px"), x(col) + 6, 24);
    } else if (g.head === "upright") {
      context.save();
      context.translate(middle, g.top - 5);
      context.rotate(-Math.PI / 2);
      context.textAlign = "left";
      context.font = `11px ${inks.font}`;
      context.fillText(fit(spec.columns.name(col), g.top - 10, "11px"), 0, 0);
      context.restore();
    } else {
      const first = col === 0 && g.width < 18;  // has no room to its left
      context.textAlign = first ? "left" : "center";
      context.font = `10px ${inks.font}`;
      context.fillText(spec.columns.number(col), first ? x(col) : middle, 8);
      context.fillRect(Math.round(middle), g.top - 5, 1, 4);
    }
  }
  context.restore();
}

function paintRowNames(context, spec, g, view, { y, row0, row1 }, cursor) {
  const chosen = spec.chosenRow ? spec.chosenRow() : -1;
  context.save();
  context.beginPath();
  context.rect(0, g.top, g.left, view.height - g.top);
  context.clip();
  context.textAlign = "right";
  context.font = `${g.height >= 13 ? 12 : 10}px ${inks.font}`;
  const every = g.height >= kNamedRow ? 1 : step(g.height, 20);
  for (let row = Math.floor(row0 / every) * every; row < row1; row += every) {
    context.fillStyle = row === chosen ? inks.accent : cursor && cursor.row === row ? inks.ink : inks.muted;
    const name = g.height >= kNamedRow ? spec.rowNames[row] : rowNumber(spec, row);
    context.fillText(fit(name, g.left - 8, context.font.split("px")[0] + "px"), g.left - 7, y(row) + g.height / 2);
  }
  context.restore();
}
