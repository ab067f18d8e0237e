// A matrix as a picture: any number of cells on one canvas that shows the part in view, with names that stay in sight, figures
// under the pointer, and keys for those who have none.
//
// What is shown is a plain object:
//   label                   what it is, for those who hear it
//   rows, cols              numbers of cells
//   shade(row, col)         0 to 1, or NaN for nothing
//   describe(row, col)      nodes with the cell's figures
//   columns                 { kind: "tokens", "ticks" or "none", name(col), number(col); room: pixels between numbers }
//   rowNames, rowNumber(row)  names at the left, and what stands there where only some fit
//   width                   [least, most] pixels of a column; smallest: where all shall be seen at once
//   height                  pixels of a row; or square: most pixels of the side of a square whole
//   text(row, col), mark(row, col)  what stands in a cell where there is room, and which cells have a corner
//   choose(row, col), chosenCol(), chosenRow()  what a click means, and what is chosen
//   axis                    one row of bars instead of cells: { most: what the longest stands for; level, levelName: a line }

class Matrix {
  constructor(spec) {
    this.cursor = null;
    this.whole = false;
    this.canvas = el("canvas", { "aria-hidden": "true" });
    this.inner = el("div", { class: "inner" }, this.canvas);
    this.view = el("div", { class: "matrix", tabindex: "0", role: "application", "aria-describedby": "tooltip" }, this.inner);
    this.zoom = el("button", { type: "button", class: "zoom", hidden: "", onclick: () => this.toggleWhole() });
    this.frame = el("div", { class: "frame" }, this.view);
    this.listen();
    this.show(spec);
    repaints.add(() => this.show(this.spec));
    selection.listeners.push(() => this.follow());
    const resize = () => this.resize();
    new ResizeObserver(() => redrawSoon(resize)).observe(this.frame);
  }

  // Shows something else in the same place.
  show(spec) {
    this.spec = spec;
    this.view.setAttribute("aria-label", `${spec.label}; arrow keys move from cell to cell`);
    if (!spec.axis) this.cells = bitmapOf(spec.rows, spec.cols, spec.shade);
    if (this.cursor && (this.cursor.row >= spec.rows || this.cursor.col >= spec.cols)) this.cursor = null;
    this.resize();
  }

  toggleWhole() {
    this.whole = !this.whole;
    this.resize();
  }

  resize() {
    const available = this.frame.clientWidth;
    if (available === 0) return;
    const readable = layoutMatrix(this.spec, available, false);
    const overflows = readable.innerWidth > available;
    const g = this.whole && overflows ? layoutMatrix(this.spec, available, true) : readable;
    const isFirst = !this.geometry;
    this.geometry = g;
    this.zoom.hidden = !overflows || !this.spec.text;
    this.zoom.textContent = this.whole ? "Readable cells" : "Whole prompt at once";
    this.inner.style.width = `${g.innerWidth}px`;
    this.inner.style.height = `${g.innerHeight}px`;
    this.view.style.width = `${g.innerWidth}px`;
    // A scroll bar that takes room takes it from nobody's cells.
    this.view.style.height = `${g.innerHeight}px`;
    this.view.style.height = `${g.innerHeight + this.view.offsetHeight - this.view.clientHeight}px`;
    if (isFirst) this.follow();
    this.draw();
  }

  draw() {
    redrawSoon((this.drawNow ??= () => this.paint()));
  }

  paint() {
    if (!this.geometry) return;
    const { clientWidth: width, clientHeight: height, scrollLeft: x, scrollTop: y } = this.view;
    const scale = window.devicePixelRatio || 1;
    const [wide, high] = [Math.round(width * scale), Math.round(height * scale)];
    if (this.canvas.width !== wide || this.canvas.height !== high) {
      this.canvas.width = wide;
      this.canvas.height = high;
      this.canvas.style.width = `${width}px`;
      this.canvas.style.height = `${height}px`;
    }
    const context = this.canvas.getContext("2d");
    context.setTransform(scale, 0, 0, scale, 0, 0);
    paintMatrix(context, this.spec, this.geometry, { x, y, width, height }, this.cells, this.cursor);
  }

  listen() {
    const { view } = this;
    view.addEventListener("scroll", () => {
      if (!this.byKeys) this.leave();
      this.byKeys = false;
      this.draw();
    });
    view.addEventListener("pointermove", (event) => this.point(this.cellAt(event)));
    view.addEventListener("pointerleave", () => this.leave());
    view.addEventListener("click", (event) => {
      const cell = this.cellAt(event) ?? this.headAt(event);
      if (!cell) return;
      this.spec.choose?.(cell.row, cell.col);
      this.point(cell);
    });
    view.addEventListener("keydown", (event) => this.key(event));
    view.addEventListener("blur", () => this.leave());
  }

  // The cell under the pointer, or null.
  cellAt(event) {
    const box = this.view.getBoundingClientRect();
    const [x, y] = [event.clientX - box.left, event.clientY - box.top];
    const g = this.geometry;
    if (x < g.left || y < g.top || x >= this.view.clientWidth || y >= this.view.clientHeight) return null;
    const col = Math.floor((x - g.left + this.view.scrollLeft) / g.width);
    const row = Math.floor((y - g.top + this.view.scrollTop) / g.height);
    return row < this.spec.rows && col < this.spec.cols ? { row, col } : null;
  }

  // A click on the name of a column means the column.
  headAt(event) {
    const box = this.view.getBoundingClientRect();
    const x = event.clientX - box.left;
    const col = Math.floor((x - this.geometry.left + this.view.scrollLeft) / this.geometry.width);
    if (this.spec.columns.kind !== "tokens" || x < this.geometry.left || col >= this.spec.cols) return null;
    return { row: this.spec.rows - 1, col };
  }

  key(event) {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const { rows, cols } = this.spec;
    const at = this.cursor ?? { row: rows - 1, col: cols - 1 };
    const moves = {
      ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0],
      Home: [0, -cols], End: [0, cols], PageUp: [-10, 0], PageDown: [10, 0],
    };
    if (event.key === "Escape") return this.leave();
    if (event.key === "Enter" || event.key === " ") this.spec.choose?.(at.row, at.col);
    else if (!(event.key in moves)) return;
    event.preventDefault();
    const [down, right] = moves[event.key] ?? [0, 0];
    const cell = this.cursor
      ? { row: clamp(at.row + down, 0, rows - 1), col: clamp(at.col + right, 0, cols - 1) }
      : at;
    this.reveal(cell);
    this.point(cell);
  }

  // Scrolls so that a cell is in sight, and not under the names.
  reveal({ row, col }) {
    const g = this.geometry;
    const into = (begin, size, names, scroll, room) =>
      begin < scroll ? begin : begin + size > scroll + room - names ? begin + size - room + names : scroll;
    const left = into(col * g.width, g.width, g.left, this.view.scrollLeft, this.view.clientWidth);
    const top = into(row * g.height, g.height, g.top, this.view.scrollTop, this.view.clientHeight);
    this.byKeys = Math.round(left) !== Math.round(this.view.scrollLeft) || Math.round(top) !== Math.round(this.view.scrollTop);
    if (this.byKeys) this.view.scrollTo(left, top);
  }

  // Brings what was chosen elsewhere into the middle, if it is out of sight.
  follow() {
    if (!this.geometry) return;
    const { left: names, top: head, width, height } = this.geometry;
    const { scrollLeft, scrollTop, clientWidth, clientHeight } = this.view;
    const place = (index, size, offset, room) => {
      const begin = index * size;
      return index < 0 || (begin >= offset && begin + size <= offset + room) ? offset : begin + size / 2 - room / 2;
    };
    const left = place(this.spec.chosenCol?.() ?? -1, width, scrollLeft, clientWidth - names);
    const top = place(this.spec.chosenRow?.() ?? -1, height, scrollTop, clientHeight - head);
    if (left !== scrollLeft || top !== scrollTop) this.view.scrollTo(left, top);
    this.draw();
  }

  point(cell) {
    if (!cell || Number.isNaN(this.spec.shade(cell.row, cell.col))) return this.leave();
    this.cursor = cell;
    const box = this.view.getBoundingClientRect();
    const g = this.geometry;
    const left = box.left + g.left + cell.col * g.width - this.view.scrollLeft;
    const top = box.top + g.top + cell.row * g.height - this.view.scrollTop;
    tooltip.show(this.spec.describe(cell.row, cell.col), { left, top, right: left + g.width, bottom: top + g.height });
    this.draw();
  }

  leave() {
    if (!this.cursor) return;
    this.cursor = null;
    tooltip.hide();
    this.draw();
  }
}

// What all matrices with a column a token have in common.
const byToken = {
  columns: { kind: "tokens", name: textAt, number: String },
  chosenCol: () => selection.token,
  choose: (row, token) => selectToken(token),
};
