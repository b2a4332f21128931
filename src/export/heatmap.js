// The heat map of rbpf: a column for each second, a cell for each fraction of it, from the bottom up.
// heatmap.c has packed the data. Below it is the flame graph of the range that is selected, or of all.
(() => {
const about = page.json('about');
const {columns, rows} = about, CELLS = columns * rows, UNIT = about.by_samples ? 'count' : about.unit;
const MAX_SIDE = 36, MIN_WIDTH = 4, MAX_CANVAS = 30000, STEPS = 256, MAX_FRAMES = 6000;
const cells = (() => {
	const data = page.numbers('cells');
	return Float64Array.from({length: CELLS}, () => data.next());
})();
const nodes = page.nodes('nodes', about.labels, data => ({category: data.next(), shade: data.next()}));
// Below a garbage collection all is its time, whatever function of the collector runs.
const GC = about.categories.indexOf('GC');
nodes.forEach((node, i) => {
	node.id = i;
	node.kind = node.parent && node.parent.kind === GC ? GC : node.category;
});

// For each slot with samples its number, its nodes and their values.
const slots = (() => {
	const data = page.numbers('slots'), list = [];
	for (let n = data.next(), slot = 0; n; n--) {
		slot += data.next();
		const m = data.next(), ids = new Uint32Array(m), values = new Float64Array(m);
		for (let i = 0, id = 0; i < m; i++) {
			id = ids[i] = id + data.next();
			values[i] = data.next();
		}
		list.push({slot, ids, values});
	}
	return list;
})();

const startOf = cell => Math.floor(cell / rows) * about.column_ns + cell % rows * about.cell_ns;
const endOf = cell => cell % rows === rows - 1 ? (Math.floor(cell / rows) + 1) * about.column_ns : startOf(cell) + about.cell_ns;
const slotOf = cell => Math.floor(cell / about.slot_cells);
const seconds = ns => +(ns / 1e9).toFixed(6) + ' s';
const what = about.by_samples ? 'samples' : about.event === 'cpu' ? 'CPU time' : about.event;
const told = v => `${page.amount(v, UNIT)} ${what}`;

// A range of whole slots, from cell to cell.
function snap(a, b) {
	const n = about.slot_cells;
	return {from: Math.floor(Math.min(a, b) / n) * n, to: Math.min(CELLS - 1, (Math.floor(Math.max(a, b) / n) + 1) * n - 1)};
}

// What the user chose.
let selected = null; // {from, to}: cells; null: all
let anchor = null; // the cell where a selection began that has no end yet
let cursor = null; // the cell under the mouse, or where the keys are

// Elements.
const header = page.head(about);
const bar = page.make(header, 'div', {class: 'bar'});
const map = page.make(document.body, 'main', {class: 'map'});
const times = page.make(map, 'div', {class: 'times', 'aria-hidden': true});
const scroll = page.make(map, 'div', {class: 'scroll'});
const field = page.make(scroll, 'div', {class: 'field', id: 'map', tabindex: 0, role: 'application',
	'aria-label': `Heat map of ${what}: arrows move, Enter begins and ends a range, ? shows all keys`});
const canvas = page.make(field, 'canvas', {id: 'grid'});
const over = page.make(field, 'canvas', {id: 'over'});
page.make(map, 'div', {});
const axis = page.make(scroll, 'canvas', {id: 'axis', height: 20});
const scale = page.make(document.body, 'div', {class: 'scale'});
page.make(scale, 'span', {}, '0');
page.make(scale, 'i', {});
const most = page.make(scale, 'span', {id: 'most'});
const cellText = page.make(scale, 'span', {id: 'cell', role: 'status'});
const selection = page.make(document.body, 'div', {class: 'selection', 'aria-live': 'polite'});
const graph = page.make(document.body, 'div', {id: 'graph'});
page.foot(about);

const button = (text, hint, f) => {
	const b = page.make(bar, 'button', {type: 'button', title: hint}, text);
	b.addEventListener('click', f);
	return b;
};
const clear = button('Select all', 'End the selection (Esc)', () => select(null));
button('?', 'Keys (?)', () => toggleHelp());

// Sizes: columns as wide as the window allows, in whole pixels.
let cellWidth = MIN_WIDTH, cellHeight = 5;
function measure() {
	const room = scroll.clientWidth;
	cellWidth = Math.max(MIN_WIDTH, Math.min(MAX_SIDE, Math.floor(room / columns)));
	if (cellWidth * columns > MAX_CANVAS)
		cellWidth = Math.max(1, Math.floor(MAX_CANVAS / columns));
	cellHeight = Math.max(2, Math.min(MAX_SIDE, Math.round(250 / rows)));
	for (const c of [canvas, over]) {
		c.width = columns * cellWidth;
		c.height = rows * cellHeight;
		c.style.width = c.width + 'px';
	}
	axis.width = Math.max(canvas.width, 60);
	axis.style.width = axis.width + 'px';
	field.style.width = canvas.width + 'px';
	field.style.height = canvas.height + 'px';
	times.style.height = canvas.height + 'px';
	times.replaceChildren();
	for (const share of [0, 0.25, 0.5, 0.75]) {
		const mark = page.make(times, 'span', {}, page.duration(about.column_ns * share));
		mark.style.bottom = share * 100 + '%';
	}
}

// The colour of the most: that of the 99.5th percentile, so that one cell does not make all others pale.
const top = (() => {
	const used = cells.filter(v => v > 0).sort();
	return used.length ? used[Math.min(used.length - 1, Math.floor(used.length * 0.995))] : 1;
})();
most.textContent = (cells.some(v => v > top) ? '≥ ' : '') + told(top) + ' in ' + page.duration(about.cell_ns);

let shades = null;
function readColors() {
	const probe = document.createElement('canvas');
	probe.width = STEPS;
	probe.height = 1;
	const context = probe.getContext('2d', {willReadFrequently: true});
	const gradient = context.createLinearGradient(0, 0, STEPS, 0);
	for (let i = 0; i < 5; i++)
		gradient.addColorStop(i / 4, page.color(`--h${i}`));
	context.fillStyle = gradient;
	context.fillRect(0, 0, STEPS, 1);
	shades = new Uint32Array(context.getImageData(0, 0, STEPS, 1).data.buffer);
}
// What there is, is seen: the least of it is two steps from nothing.
const shadeOf = v => v ? shades[Math.max(STEPS / 16, Math.min(STEPS - 1, Math.round(v / top * (STEPS - 1))))] : shades[0];

function drawCells() {
	const context = canvas.getContext('2d'), w = canvas.width, h = canvas.height;
	const image = context.createImageData(w, h), pixels = new Uint32Array(image.data.buffer);
	for (let column = 0; column < columns; column++)
		for (let row = 0; row < rows; row++) {
			const shade = shadeOf(cells[column * rows + row]), y = h - (row + 1) * cellHeight;
			for (let dy = 0; dy < cellHeight; dy++)
				pixels.fill(shade, (y + dy) * w + column * cellWidth, (y + dy) * w + (column + 1) * cellWidth);
		}
	context.putImageData(image, 0, 0);
}

function drawAxis() {
	const context = axis.getContext('2d'), end = columns * about.column_ns;
	context.clearRect(0, 0, axis.width, 20);
	context.font = `11px ${page.color('--sans')}`;
	for (const [at, text] of page.marks(0, end, Math.max(1, canvas.width / 90))) {
		const x = at / end * canvas.width;
		if (x > axis.width - 8 && x > 40)
			continue;
		context.fillStyle = page.color('--line');
		context.fillRect(x, 0, 1, 5);
		context.fillStyle = page.color('--soft');
		context.textAlign = x < 20 ? 'left' : 'center';
		context.fillText(text, x, 16);
	}
}

// The outline of a range: whole columns but for the first and the last one.
function drawRange(context, {from, to}, fill) {
	for (let column = Math.floor(from / rows); column <= Math.floor(to / rows); column++) {
		const low = Math.max(from - column * rows, 0), high = Math.min(to - column * rows, rows - 1);
		const y = (rows - 1 - high) * cellHeight;
		context.globalAlpha = fill;
		context.fillRect(column * cellWidth, y, cellWidth, (high - low + 1) * cellHeight);
		context.globalAlpha = 1;
	}
}

function drawOver() {
	const context = over.getContext('2d');
	const range = anchor !== null ? snap(anchor, cursor === null ? anchor : cursor) : selected;
	context.clearRect(0, 0, over.width, over.height);
	if (range) {
		context.fillStyle = page.color('--bg');
		if (range.from)
			drawRange(context, {from: 0, to: range.from - 1}, 0.55);
		if (range.to < CELLS - 1)
			drawRange(context, {from: range.to + 1, to: CELLS - 1}, 0.55);
		context.strokeStyle = page.color('--chosen');
		context.lineWidth = 2;
		context.setLineDash(anchor !== null ? [4, 3] : []);
		context.stroke(outline(range));
		context.setLineDash([]);
	}
	if (cursor !== null) {
		context.strokeStyle = page.color('--text');
		context.lineWidth = 1;
		context.strokeRect(Math.floor(cursor / rows) * cellWidth + 0.5, (rows - 1 - cursor % rows) * cellHeight + 0.5,
			cellWidth - 1, cellHeight - 1);
	}
}

function outline({from, to}) {
	const path = new Path2D(), a = Math.floor(from / rows), b = Math.floor(to / rows);
	const y = row => over.height - row * cellHeight, x = column => column * cellWidth;
	const low = from % rows, high = to % rows + 1;
	if (a === b) {
		path.rect(x(a), y(high), cellWidth, (high - low) * cellHeight);
		return path;
	}
	path.moveTo(x(a), y(low));
	for (const [column, row] of [[a, rows], [b, rows], [b, high], [b + 1, high], [b + 1, 0], [a + 1, 0], [a + 1, low]])
		path.lineTo(x(column), y(row));
	path.closePath();
	return path;
}

function drawCell() {
	cellText.textContent = cursor === null ? '' : `${seconds(startOf(cursor))} to ${seconds(endOf(cursor))}: ${told(cells[cursor])}`;
}

const sum = ({from, to}) => cells.subarray(from, to + 1).reduce((a, b) => a + b, 0);
const ALL = {from: 0, to: CELLS - 1};

function drawSelection() {
	const range = selected || ALL, value = sum(range), total = sum(ALL);
	clear.disabled = !selected;
	selection.replaceChildren();
	const p = page.make(selection, 'p', {});
	page.make(p, 'b', {}, selected ? `${seconds(startOf(range.from))} to ${seconds(endOf(range.to))}` : 'All');
	p.append(`: ${told(value)}${selected ? ` (${page.percent(value, total)} of all) in ${
		page.duration(endOf(range.to) - startOf(range.from))}` : '. Click two cells to select a range of time; press ? for all keys.'}`);
	page.make(selection, 'code', {}, page.flameCommand(about, selected ? ['--from', page.option(startOf(range.from)),
		'--to', page.option(endOf(range.to))].filter((word, i) => i > 1 || range.from) : []));
}

// The flame graph: the same elements as rbpf flame writes, which flame.js takes over.
let ending = null;
function drawGraph() {
	const range = selected || ALL;
	if (ending)
		ending.abort();
	ending = new AbortController();
	graph.replaceChildren();
	const tree = weigh(slotOf(range.from), slotOf(range.to));
	const SVG = 'http://www.w3.org/2000/svg';
	const svg = graph.appendChild(document.createElementNS(SVG, 'svg'));
	page.set(svg, 'aria-label', `Flame graph of ${selected ? `${seconds(startOf(range.from))} to ${seconds(endOf(range.to))}` : 'all'}`);
	page.make(svg, 'rect', {id: 'bg', width: '100%', height: '100%'});
	const frames = page.make(svg, 'g', {id: 'frames', class: 'frames', 'data-total': tree.total,
		'data-unit': UNIT, 'data-row': 17, 'data-pad': 12, 'data-icicle': 0});
	const hidden = addFrames(frames, tree);
	addTop(svg, tree);
	const foot = page.make(svg, 'g', {id: 'foot'});
	page.make(foot, 'text', {x: 12}, hidden ? `${page.count(hidden)} frames below ${page.percent(tree.least, tree.total)} hidden` : '');
	flameGraph(svg, {embedded: true, signal: ending.signal});
	field.focus({preventScroll: true});
}

// The values of nodes in these slots: their own, and with what they called.
function weigh(first, last) {
	const own = new Float64Array(nodes.length), whole = new Float64Array(nodes.length);
	for (const {slot, ids, values} of slots)
		if (slot >= first && slot <= last)
			ids.forEach((id, i) => own[id] += values[i]);
	const children = nodes.map(() => null);
	for (let i = nodes.length - 1; i >= 0; i--) {
		whole[i] += own[i];
		if (!i || !whole[i])
			continue;
		const up = nodes[i].parent.id;
		whole[up] += whole[i];
		(children[up] = children[up] || []).push(i);
	}
	for (const list of children)
		if (list)
			list.sort((a, b) => nodes[a].name < nodes[b].name ? -1 : nodes[a].name > nodes[b].name ? 1 : a - b);
	const sizes = whole.slice().sort().reverse();
	return {own, whole, children, total: whole[0], least: Math.max(sizes[Math.min(MAX_FRAMES, sizes.length) - 1], whole[0] / 1e4)};
}

// Callers before what they called; returns how many are too narrow.
function addFrames(holder, {own, whole, children, total, least}) {
	const todo = [[0, 0, 0]];
	let hidden = 0;
	while (todo.length) {
		const [id, x, depth] = todo.pop(), {name, place, category, shade} = nodes[id];
		const g = page.make(holder, 'g', {class: id ? String.fromCharCode(97 + category) + shade : 'z', 'data-x': x,
			'data-w': whole[id], 'data-d': depth, ...id && {'data-k': category}});
		const share = v => `${page.amount(v, UNIT)} (${page.percent(v, total)})`;
		page.make(g, 'title', {}, [name, id && [about.categories[category], place].filter(Boolean).join(' · '),
			'total ' + share(whole[id]), 'self ' + share(own[id])].filter(Boolean).join('\n'));
		page.make(g, 'rect', {height: 16});
		page.make(g, 'text', {});
		const list = children[id] || [], shown = list.filter(child => whole[child] >= least);
		hidden += list.length - shown.length;
		let at = x + shown.reduce((end, child) => end + whole[child], 0);
		for (const child of shown.reverse()) {
			at -= whole[child];
			todo.push([child, at, depth + 1]);
		}
	}
	return hidden;
}

function addTop(svg, {own, total}) {
	const head = page.make(svg, 'g', {id: 'top'}), self = new Map();
	page.make(head, 'rect', {id: 'panel', width: '100%', height: 0});
	page.make(head, 'text', {id: 'title', x: 12, y: 29});
	page.make(head, 'text', {id: 'legend', x: 12}, 'Self time:');
	for (let i = 1; i < nodes.length; i++)
		if (own[i])
			self.set(nodes[i].kind, (self.get(nodes[i].kind) || 0) + own[i]);
	for (const [category, value] of [...self].sort((a, b) => a[0] - b[0])) {
		const key = page.make(head, 'g', {class: 'key', 'data-k': category});
		page.make(key, 'title', {}, `${about.categories[category]}\nself ${page.amount(value, UNIT)}`);
		page.make(key, 'rect', {class: String.fromCharCode(97 + category), width: 11, height: 11, rx: 2});
		page.make(key, 'text', {}, `${about.categories[category]} ${page.percent(value, total)}`);
	}
}

// What the user does.
function select(range) {
	selected = range;
	anchor = null;
	drawOver();
	drawSelection();
	drawGraph();
	save();
}

function touch(cell) {
	if (anchor === null) {
		anchor = cursor = cell;
		drawOver();
	} else {
		select(snap(anchor, cell));
	}
}

function moveTo(cell) {
	cursor = Math.max(0, Math.min(CELLS - 1, cell));
	drawOver();
	drawCell();
	const x = Math.floor(cursor / rows) * cellWidth;
	if (x < scroll.scrollLeft || x + cellWidth > scroll.scrollLeft + scroll.clientWidth)
		scroll.scrollLeft = x - scroll.clientWidth / 2;
}

const cellAt = ev => {
	const box = over.getBoundingClientRect();
	const column = Math.max(0, Math.min(columns - 1, Math.floor((ev.clientX - box.left) / cellWidth)));
	const row = Math.max(0, Math.min(rows - 1, rows - 1 - Math.floor((ev.clientY - box.top) / cellHeight)));
	return column * rows + row;
};
let pressed = null;
over.addEventListener('pointerdown', ev => {
	if (!ev.button)
		pressed = cellAt(ev);
});
over.addEventListener('pointermove', ev => {
	cursor = cellAt(ev);
	if (pressed !== null && pressed !== cursor && anchor === null)
		anchor = pressed;
	drawOver();
	drawCell();
});
over.addEventListener('pointerup', ev => {
	const cell = cellAt(ev);
	field.focus({preventScroll: true});
	if (pressed !== null)
		touch(cell);
	pressed = null;
});
over.addEventListener('pointerleave', () => {
	cursor = null;
	pressed = null;
	drawOver();
	drawCell();
});

const help = page.keysBox(document.body, [
	['click, click', 'the first and the last cell of a range; or drag'],
	['← → ↑ ↓', 'go to another cell'],
	['Enter, Space', 'begin a range at the cell, end it there'],
	['s', 'select the whole column'],
	['[ ]', 'move the range to what is before it, or after it'],
	['Esc', 'end what was begun, then the selection'],
	['?', 'this'],
	['Tab', 'go to the flame graph, which has keys of its own'],
]);
help.hidden = true;
function toggleHelp(show = help.hidden) {
	help.hidden = !show;
}
help.addEventListener('click', () => toggleHelp(false));

// The range of the same length just before or after.
function shift(by) {
	if (!selected)
		return;
	const length = selected.to - selected.from + 1, from = selected.from + by * length;
	if (from >= 0 && from < CELLS)
		select(snap(from, Math.min(CELLS - 1, from + length - 1)));
}

function escape() {
	if (!help.hidden)
		toggleHelp(false);
	else if (anchor !== null) {
		anchor = null;
		drawOver();
	} else if (selected) {
		select(null);
	}
}

const here = () => cursor === null ? selected ? selected.from : 0 : cursor;
const inField = {
	ArrowLeft: () => moveTo(here() - rows), ArrowRight: () => moveTo(here() + rows),
	ArrowUp: () => moveTo(here() + 1), ArrowDown: () => moveTo(here() - 1),
	Enter: () => touch(here()), ' ': () => touch(here()),
};
const anywhere = {
	s: () => select(snap(here() - here() % rows, here() - here() % rows + rows - 1)),
	'[': () => shift(-1), ']': () => shift(1), '?': () => toggleHelp(), Escape: escape,
};
window.addEventListener('keydown', ev => {
	const inGraph = graph.contains(ev.target);
	const action = inGraph ? null : anywhere[ev.key] || (document.activeElement === field && inField[ev.key]);
	if (!action || ev.ctrlKey || ev.metaKey || ev.altKey)
		return;
	ev.preventDefault();
	action();
});

// The selection is in the URL, so that it can be passed on.
function save() {
	const hash = selected ? `${selected.from}-${selected.to}` : '';
	try {
		if (location.hash.slice(1) !== hash)
			history.replaceState(null, '', '#' + hash);
	} catch (e) {
		// a sandboxed frame
	}
}

function load() {
	const match = /^#(\d+)-(\d+)$/.exec(location.hash);
	select(match && +match[2] < CELLS && +match[1] <= +match[2] ? snap(+match[1], +match[2]) : null);
}

function draw() {
	measure();
	drawCells();
	drawAxis();
	drawOver();
}
readColors();
page.onColors(() => {
	readColors();
	draw();
});
window.addEventListener('resize', draw);
window.addEventListener('hashchange', load);
draw();
load();
drawCell();
window.heatmap = {about, cells, nodes, slots, select, snap, weigh, sum, startOf, endOf,
	get selected() { return selected; }, get cursor() { return cursor; }, get anchor() { return anchor; }};
})();
