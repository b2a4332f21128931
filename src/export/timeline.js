// The timeline of rbpf: a row for each thread, time from left to right. timeline.c has packed the data.
//
// A column of pixels shows the states that the thread was in during its time, each as high as its
// share; what is left white is time of which nothing is known. A stripe at the bottom is garbage
// collection. Zoomed in far enough a column has one state, and a block is one span.
(() => {
const about = page.json('about');
const STATES = about.states.length, STATE = 31, GC = 32, MERGED = 64, HAS_VALUE = 128, IDLE = about.states.findIndex(s => s[0] === 'idle');
const LANE = 20, STRIPE = 4, REQUEST = 15, MIN_VIEW = 1000, WHEEL = 1.0015, MAX_DPR = 2;
const CPU = ['user', 'system', 'minor-fault'].map(word => about.states.findIndex(s => s[0] === word)); // the states in which a thread runs
const nodes = page.nodes('nodes', about.labels);

// Spans of all rows, as arrays: they are many.
function readSpans(id, width) {
	const data = page.numbers(id);
	return about.rows.map(() => {
		const n = data.next();
		const s = {n, start: new Float64Array(n), len: new Float64Array(n), value: new Float64Array(n),
			head: new Uint8Array(n), samples: new Uint32Array(n), what: new Uint32Array(n), longest: 0};
		for (let i = 0, before = 0; i < n; i++) {
			const head = s.head[i] = data.byte(), merged = head & MERGED;
			const unit = merged ? width : 1;
			before = s.start[i] = merged ? (Math.floor(before / unit) + data.next()) * unit : before + data.next();
			s.len[i] = merged ? width : data.next();
			s.value[i] = head & HAS_VALUE ? data.next() : s.len[i];
			s.samples[i] = data.next();
			s.what[i] = data.next();
			s.longest = Math.max(s.longest, s.len[i]);
		}
		return s;
	});
}
const spans = readSpans('spans', about.width), requests = readSpans('requests', about.request_width);

// The index of the first span that may reach beyond @t.
function firstAt(s, t) {
	let low = 0, high = s.n;
	while (low < high) {
		const mid = low + high >> 1;
		if (s.start[mid] + s.longest < t)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

const FROM = about.from, TO = Math.max(about.to, FROM + MIN_VIEW);
const view = {from: FROM, to: TO};
const off = new Set();
let current = null; // the row that has the keys
let chosen = null; // the span whose details are shown: {row, i}
let colors = [], shades = new Uint32Array(0);

// Elements.
const header = page.head(about);
const bar = page.make(header, 'div', {class: 'bar'});
const legend = page.make(header, 'div', {class: 'legend', role: 'group', 'aria-label': 'States'});
const lanes = page.make(document.body, 'main', {class: 'lanes'});
const ruler = page.make(lanes, 'div', {class: 'ruler'});
page.make(ruler, 'div', {class: 'what'}, 'all threads');
const overview = page.make(ruler, 'canvas', {id: 'overview', role: 'img', 'aria-label': 'All threads over the whole time'});
const rangeText = page.make(ruler, 'div', {class: 'what', id: 'range', role: 'status'});
const axis = page.make(ruler, 'canvas', {id: 'axis'});
const details = page.make(document.body, 'aside', {id: 'details', 'aria-live': 'polite'});

const button = (text, hint, f) => {
	const b = page.make(bar, 'button', {type: 'button', title: hint}, text);
	b.addEventListener('click', f);
	return b;
};
const zoomOut = button('Reset zoom', 'Show everything (0)', () => setView(FROM, TO));
button('Zoom in', 'To the middle (+)', () => zoomAt(0.5, 0.5));
button('Zoom out', '(−)', () => zoomAt(0.5, 2));
button('?', 'Keys (?)', () => toggleHelp());

const sumOf = (states, list) => list.reduce((sum, i) => sum + states[i], 0);
const busyOf = states => states.reduce((sum, v, i) => sum + (i === IDLE ? 0 : v), 0);

const keys = about.states.map(([word, text], i) => {
	if (!about.all.states[i])
		return null;
	const key = page.make(legend, 'button', {type: 'button', role: 'checkbox', 'aria-checked': true,
		title: `${word}: ${text} (click to hide)`});
	page.make(key, 'i', {});
	page.make(key, 'span', {});
	key.addEventListener('click', () => {
		if (!off.delete(i))
			off.add(i);
		page.set(key, 'aria-checked', !off.has(i));
		key.classList.toggle('off', off.has(i));
		draw();
	});
	return {key, i, text};
}).filter(Boolean);
const gcKey = spans.some(s => s.head.some(h => h & GC)) && page.make(legend, 'span', {});
if (gcKey) {
	page.make(gcKey, 'i', {});
	page.make(gcKey, 'span', {}, 'stripe: garbage collection');
}

// What a thread did in all, in words.
function tell(states, sum) {
	return about.states.map(([, text], i) => states[i] ?
		`${text}: ${page.duration(states[i])} (${page.percent(states[i], sum)})` : '').filter(Boolean).join('\n');
}

let lastProcess = -1;
const rows = about.rows.map((row, i) => {
	if (row.process !== lastProcess) {
		const all = about.rows.filter(r => r.process === row.process);
		const title = page.make(lanes, 'div', {class: 'process'}, row.program + ' ');
		page.make(title, 'span', {}, `${page.count(all.length)} thread${all.length === 1 ? '' : 's'}, ${
			page.duration(all.reduce((sum, r) => sum + sumOf(r.states, CPU), 0))} CPU`);
		lastProcess = row.process;
	}
	const e = page.make(lanes, 'div', {class: requests[i].n ? 'row served' : 'row', tabindex: -1, role: 'group',
		'aria-label': `${row.name}, tid ${row.tid}: ${tell(row.states, row.sum).replace(/\n/g, ', ')}`});
	const name = page.make(e, 'div', {class: 'name', title: `${row.name} (tid ${row.tid})\n${tell(row.states, row.sum)}`});
	page.make(name, 'b', {}, row.name);
	const time = page.make(name, 'span', {});
	const canvas = page.make(e, 'canvas', {});
	return {...row, i, e, time, canvas, spans: spans[i], requests: requests[i], visible: false, sums: null};
});
const byElement = new Map(rows.map(row => [row.e, row]));
page.foot(about);

// Colours, as canvases need them.
function readColors() {
	const probe = document.createElement('canvas').getContext('2d', {willReadFrequently: true});
	const names = [...about.states.map(([word]) => `--state-${word}`), '--gc'];
	colors = names.map(page.color);
	shades = Uint32Array.from(colors, c => {
		probe.fillStyle = c;
		probe.fillRect(0, 0, 1, 1);
		return new Uint32Array(probe.getImageData(0, 0, 1, 1).data.buffer)[0];
	});
	for (const {key, i} of keys)
		key.firstChild.style.background = colors[i];
	if (gcKey)
		gcKey.firstChild.style.background = colors[STATES];
}

// Painting.
const ratio = () => Math.min(window.devicePixelRatio || 1, MAX_DPR);

function fitCanvas(canvas) {
	const w = Math.max(1, Math.round(canvas.clientWidth * ratio())), h = Math.round(canvas.clientHeight * ratio());
	if (canvas.width !== w || canvas.height !== h) {
		canvas.width = w;
		canvas.height = h;
	}
	return canvas.getContext('2d');
}

// Add to @acc, for each of @w columns from @from to @to, the part of it in each state, and in the
// last place in garbage collection. Returns the sums of the states in that time.
function gather(s, from, to, w, acc) {
	const k = w / (to - from), sums = new Float64Array(STATES + 1);
	const add = (column, state, part, gc) => {
		acc[column * (STATES + 1) + state] += part;
		if (gc)
			acc[column * (STATES + 1) + STATES] += part;
	};
	for (let i = firstAt(s, from); i < s.n && s.start[i] <= to; i++) {
		const start = s.start[i], len = s.len[i], end = start + len, state = s.head[i] & STATE;
		if (end < from || len && (end === from || start === to))
			continue;
		const inside = len ? (Math.min(end, to) - Math.max(start, from)) / len : 1;
		const gc = s.head[i] & GC;
		sums[state] += s.value[i] * inside;
		if (gc)
			sums[STATES] += s.value[i] * inside;
		if (off.has(state) || !acc)
			continue;
		const a = (start - from) * k, b = (end - from) * k;
		if (!len || Math.floor(a) === Math.floor(b)) {
			add(Math.min(w - 1, Math.floor(a)), state, s.value[i] * k, gc);
			continue;
		}
		const density = s.value[i] / len, last = Math.min(w, Math.ceil(b));
		for (let x = Math.max(0, Math.floor(a)); x < last; x++)
			add(x, state, (Math.min(b, x + 1) - Math.max(a, x)) * density, gc);
	}
	return sums;
}

// The heights of the states in a column of @h pixels, the first at the bottom: what there is, is seen.
function heights(acc, column, h, scale, ret) {
	const at = column * (STATES + 1);
	let sum = 0;
	for (let i = 0; i < STATES; i++)
		sum += acc[at + i];
	const unit = h / Math.max(sum, scale);
	for (let i = 0, y = 0, part = 0; i < STATES; i++) {
		part += acc[at + i];
		const top = acc[at + i] > 0 ? Math.min(h, Math.max(y + 1, Math.round(part * unit))) : y;
		ret[i] = top - y;
		y = top;
	}
	return ret;
}

function paint(context, acc, w, h, scale, stripe) {
	const image = context.createImageData(w, h), pixels = new Uint32Array(image.data.buffer);
	const high = new Uint16Array(STATES);
	for (let x = 0; x < w; x++) {
		heights(acc, x, h, scale, high);
		let y = h - 1;
		for (let i = 0; i < STATES; i++)
			for (let n = high[i]; n; n--, y--)
				pixels[y * w + x] = shades[i];
		const gc = acc[x * (STATES + 1) + STATES];
		if (!gc || !stripe)
			continue;
		const sum = Math.max(scale, acc.subarray(x * (STATES + 1), x * (STATES + 1) + STATES).reduce((a, b) => a + b, 0));
		const rise = Math.max(1, Math.round(stripe * Math.min(1, gc / sum)));
		for (y = h - rise; y < h; y++)
			pixels[y * w + x] = shades[STATES];
	}
	context.putImageData(image, 0, 0);
}

function drawRequests(row, context) {
	const s = row.requests, dpr = ratio(), w = row.canvas.clientWidth, k = w / (view.to - view.from);
	context.setTransform(dpr, 0, 0, dpr, 0, 0);
	context.clearRect(0, LANE, w, REQUEST);
	context.font = `10px ${page.color('--sans')}`;
	context.textBaseline = 'middle';
	for (let i = firstAt(s, view.from); i < s.n && s.start[i] <= view.to; i++) {
		const a = Math.max(0, (s.start[i] - view.from) * k);
		const b = Math.max(a + 1, Math.min(w, (s.start[i] + s.len[i] - view.from) * k));
		if (s.start[i] + s.len[i] < view.from)
			continue;
		context.fillStyle = page.color('--request');
		context.fillRect(a, LANE + 1, b - a, REQUEST - 2);
		context.fillStyle = page.color('--requestline');
		context.fillRect(a, LANE + 1, 1, REQUEST - 2);
		if (b - a < 24)
			continue;
		context.fillStyle = page.color('--text');
		context.fillText(page.fit(requestName(s, i), Math.floor((b - a - 6) / 5.6)), a + 4, LANE + REQUEST / 2 + 0.5, b - a - 6);
	}
	context.setTransform(1, 0, 0, 1, 0, 0);
}

const requestName = (s, i) => s.samples[i] > 1 ? `${page.count(s.samples[i])} requests` : about.kinds[s.what[i]][0];
const isWhole = () => view.from <= FROM && view.to >= TO;

function drawRow(row) {
	const context = fitCanvas(row.canvas), w = row.canvas.width;
	const h = Math.round(LANE * ratio()), acc = new Float32Array(w * (STATES + 1));
	row.sums = gather(row.spans, view.from, view.to, w, acc);
	paint(context, acc, w, h, 1, Math.round(STRIPE * ratio()));
	row.acc = acc;
	if (row.requests.n)
		drawRequests(row, context);
	if (chosen && chosen.row === row)
		outline(row, context);
	const states = isWhole() ? row.states : row.sums.slice(0, STATES);
	row.time.textContent = page.duration(sumOf(states, CPU)) + (about.event === 'cpu' ? '' : ' CPU');
}

function outline(row, context) {
	const s = row.spans, k = row.canvas.width / (view.to - view.from), i = chosen.i;
	const a = (s.start[i] - view.from) * k, b = a + Math.max(2, s.len[i] * k), line = Math.round(ratio()) + 1;
	context.strokeStyle = page.color('--text');
	context.lineWidth = line;
	context.strokeRect(a + line / 2, line / 2, Math.max(1, b - a - line), LANE * ratio() - line);
}

let whole = null; // columns of the overview: those of all time do not change with the zoom
function drawOverview() {
	const context = fitCanvas(overview), w = overview.width, h = overview.height;
	if (!whole || whole.w !== w || whole.off !== off.size) {
		const acc = new Float32Array(w * (STATES + 1));
		for (const row of rows)
			gather(row.spans, FROM, TO, w, acc);
		let most = 0;
		for (let x = 0; x < w; x++) {
			let sum = 0;
			if (IDLE >= 0)
				acc[x * (STATES + 1) + IDLE] = 0;
			for (let i = 0; i < STATES; i++)
				sum += acc[x * (STATES + 1) + i];
			most = Math.max(most, sum);
		}
		whole = {w, acc, most, off: off.size};
	}
	paint(context, whole.acc, w, h, whole.most || 1, 0);
	const k = w / (TO - FROM), a = (view.from - FROM) * k, b = (view.to - FROM) * k;
	context.fillStyle = page.color('--bg');
	context.globalAlpha = 0.65;
	context.fillRect(0, 0, a, h);
	context.fillRect(b, 0, w - b, h);
	context.globalAlpha = 1;
	context.strokeStyle = page.color('--accent');
	context.lineWidth = 2;
	if (!isWhole())
		context.strokeRect(a, 1, Math.max(2, b - a), h - 2);
}

function drawAxis() {
	const context = fitCanvas(axis), dpr = ratio(), w = axis.clientWidth;
	context.setTransform(dpr, 0, 0, dpr, 0, 0);
	context.clearRect(0, 0, w, 22);
	context.font = `11px ${page.color('--sans')}`;
	for (const [at, text] of page.marks(view.from, view.to, Math.max(2, w / 110))) {
		const x = (at - view.from) / (view.to - view.from) * w;
		context.fillStyle = page.color('--line');
		context.fillRect(x, 15, 1, 7);
		context.fillStyle = page.color('--soft');
		context.textAlign = x < 20 ? 'left' : x > w - 24 ? 'right' : 'center';
		context.fillText(text, x, 11);
	}
	context.setTransform(1, 0, 0, 1, 0, 0);
	rangeText.textContent = `${page.duration(view.to - view.from)} from ${page.duration(view.from)}`;
}

function drawLegend() {
	let states = about.all.states;
	if (!isWhole()) {
		states = new Float64Array(STATES);
		for (const row of rows) {
			const sums = gather(row.spans, view.from, view.to, 1, null);
			for (let i = 0; i < STATES; i++)
				states[i] += sums[i];
		}
	}
	const sum = states.reduce((a, b) => a + b, 0);
	for (const {key, i, text} of keys)
		key.lastChild.textContent = `${text} ${page.duration(states[i])} (${page.percent(states[i], sum)})`;
}

let waiting = 0;
function draw() {
	if (!waiting)
		waiting = requestAnimationFrame(() => {
			waiting = 0;
			drawNow();
		});
}

function drawNow() {
	drawOverview();
	drawAxis();
	drawLegend();
	for (const row of rows)
		if (row.visible)
			drawRow(row);
	zoomOut.disabled = isWhole();
	save();
}

// The rows that are on the screen: others have no picture, which would take memory.
const observer = new IntersectionObserver(entries => {
	for (const {target, isIntersecting} of entries) {
		const row = byElement.get(target);
		row.visible = isIntersecting;
		if (isIntersecting)
			drawRow(row);
		else
			row.canvas.width = row.canvas.height = 0;
	}
}, {rootMargin: '200px'});

// What the user does.
function setView(from, to) {
	const width = Math.min(TO - FROM, Math.max(MIN_VIEW, to - from));
	from = Math.max(FROM, Math.min(TO - width, from));
	view.from = from;
	view.to = from + width;
	draw();
}

function zoomAt(share, factor) {
	const width = view.to - view.from, at = view.from + share * width;
	setView(at - share * width * factor, at + (1 - share) * width * factor);
}

const pan = share => setView(view.from + share * (view.to - view.from), view.to + share * (view.to - view.from));

function makeCurrent(row, scroll) {
	if (current)
		current.e.classList.remove('current');
	current = row;
	row.e.classList.add('current');
	row.e.focus({preventScroll: true});
	if (scroll)
		row.e.scrollIntoView({block: 'nearest'});
}

// The span that is seen at this place of a row: the state is that of the pixel, the span the one that
// has most of the column.
function spanAt(row, x, y) {
	const s = row.spans, w = row.canvas.width;
	const column = Math.min(w - 1, Math.floor(x / row.canvas.clientWidth * w)), h = Math.round(LANE * ratio());
	const high = heights(row.acc, column, h, 1, new Uint16Array(STATES)), unit = (view.to - view.from) / w;
	let state = -1, best = -1, most = -1;
	for (let i = 0, top = h; i < STATES; i++) {
		top -= high[i];
		if (high[i] && y * ratio() >= top) {
			state = i;
			break;
		}
	}
	const from = view.from + column * unit, to = from + unit;
	for (let i = firstAt(s, from); i < s.n && s.start[i] < to; i++) {
		const part = Math.min(to, s.start[i] + s.len[i]) - Math.max(from, s.start[i]);
		const v = s.len[i] ? s.value[i] * part / s.len[i] : s.value[i];
		if (part < 0 || state >= 0 && (s.head[i] & STATE) !== state || off.has(s.head[i] & STATE) || v <= most)
			continue;
		most = v;
		best = i;
	}
	return best;
}

function requestAt(row, x) {
	const s = row.requests, t = view.from + x / row.canvas.clientWidth * (view.to - view.from);
	for (let i = firstAt(s, t); i < s.n && s.start[i] <= t; i++)
		if (s.start[i] + s.len[i] >= t)
			return i;
	return -1;
}

// The command line that draws the flame graph of a time of a thread. A sample counts where it ended: that
// of the span before ended when this one began.
function commandOf(row, from, to) {
	return page.flameCommand(about, ['--tid', String(row.tid), '--from', page.option(from + 1), '--to', page.option(Math.max(to, from + 1) + 1)]);
}

function choose(row, i) {
	chosen = {row, i};
	const s = row.spans, head = s.head[i], state = head & STATE, end = s.start[i] + s.len[i];
	details.replaceChildren();
	const title = page.make(details, 'h2', {});
	page.make(title, 'i', {}).style.background = colors[state];
	title.append(`${about.states[state][1]}${head & GC ? ', collects garbage' : ''}: ${page.duration(s.value[i])}`);
	page.make(details, 'p', {}, `${row.name} (tid ${row.tid}), ${
		head & MERGED ? `within ${page.duration(s.len[i])}` : page.duration(s.len[i])} from ${
		(s.start[i] / 1e9).toFixed(6)} s to ${(end / 1e9).toFixed(6)} s, ${
		page.count(s.samples[i])} sample${s.samples[i] === 1 ? '' : 's'}${
		head & MERGED ? '; merged, this is its most frequent stack:' : ''}`);
	const list = page.make(details, 'ol', {});
	for (let node = nodes[s.what[i]]; node && node.parent; node = node.parent) {
		const item = page.make(list, 'li', {}, node.name + ' ');
		page.make(item, 'span', {}, node.place);
	}
	if (!list.firstChild)
		page.make(list, 'li', {}, '[no stack]');
	page.make(details, 'code', {}, commandOf(row, s.start[i], end));
	makeCurrent(row, false);
	draw();
}

function chooseRequest(row, i) {
	const s = row.requests, end = s.start[i] + s.len[i];
	chosen = null;
	details.replaceChildren();
	page.make(details, 'h2', {}, `${requestName(s, i)}: ${page.duration(s.len[i])}`);
	page.make(details, 'p', {}, `${row.name} (tid ${row.tid}), from ${(s.start[i] / 1e9).toFixed(6)} s to ${
		(end / 1e9).toFixed(6)} s, ${page.duration(s.value[i])} of samples`);
	page.make(details, 'code', {}, commandOf(row, s.start[i], end));
	draw();
}

const HINT = 'Wheel or drag to zoom, click a span for its stack. Press ? for all keys.';
function chooseNothing() {
	chosen = null;
	details.replaceChildren();
	page.make(details, 'p', {}, HINT);
	draw();
}

// The next or previous span of the row, on the screen.
function step(by) {
	const row = current || rows[0], s = row.spans;
	if (!s.n)
		return;
	let i = chosen && chosen.row === row ? chosen.i + by : firstAt(s, view.from);
	while (i >= 0 && i < s.n && off.has(s.head[i] & STATE))
		i += by;
	if (i < 0 || i >= s.n)
		return;
	const width = view.to - view.from;
	if (s.start[i] < view.from || s.start[i] + Math.min(s.len[i], width) > view.to)
		setView(s.start[i] - width / 4, s.start[i] + width * 3 / 4);
	choose(row, i);
}

// Mouse: a drag across lanes or axis zooms, in the overview it moves what is shown.
let drag = null;
const band = page.make(document.body, 'div', {id: 'band', hidden: ''});
function share(canvas, ev) {
	const box = canvas.getBoundingClientRect();
	return Math.max(0, Math.min(1, (ev.clientX - box.left) / box.width));
}

function startDrag(canvas, row, ev) {
	if (ev.button)
		return;
	drag = {canvas, row, from: share(canvas, ev), x: ev.clientX, moved: false};
	canvas.setPointerCapture(ev.pointerId);
}

function moveDrag(ev) {
	if (!drag)
		return;
	drag.moved = drag.moved || Math.abs(ev.clientX - drag.x) > 3;
	if (!drag.moved)
		return;
	const box = drag.canvas.getBoundingClientRect(), to = share(drag.canvas, ev);
	band.hidden = false;
	band.style.left = `${box.left + window.scrollX + Math.min(drag.from, to) * box.width}px`;
	band.style.top = `${box.top + window.scrollY}px`;
	band.style.width = `${Math.abs(to - drag.from) * box.width}px`;
	band.style.height = `${box.height}px`;
}

function endDrag(ev) {
	if (!drag)
		return;
	const {canvas, row, moved, from} = drag, to = share(canvas, ev);
	const all = canvas === overview ? {from: FROM, to: TO} : {...view}, width = all.to - all.from;
	drag = null;
	band.hidden = true;
	if (moved) {
		setView(all.from + Math.min(from, to) * width, all.from + Math.max(from, to) * width);
		return;
	}
	if (canvas === overview) {
		const half = (view.to - view.from) / 2, at = FROM + to * width;
		setView(at - half, at + half);
	}
	if (!row)
		return;
	const box = canvas.getBoundingClientRect(), x = ev.clientX - box.left, y = ev.clientY - box.top;
	const inRequests = y >= LANE, i = inRequests ? requestAt(row, x) : spanAt(row, x, y);
	makeCurrent(row, false);
	if (i < 0)
		chooseNothing();
	else if (inRequests)
		chooseRequest(row, i);
	else
		choose(row, i);
}

function wheel(canvas, ev) {
	ev.preventDefault();
	if (ev.shiftKey || Math.abs(ev.deltaX) > Math.abs(ev.deltaY))
		pan((ev.deltaX || ev.deltaY) / 1000);
	else
		zoomAt(canvas === overview ? 0.5 : share(canvas, ev), WHEEL ** ev.deltaY);
}

for (const [canvas, row] of [[overview, null], [axis, null], ...rows.map(row => [row.canvas, row])]) {
	canvas.addEventListener('pointerdown', ev => startDrag(canvas, row, ev));
	canvas.addEventListener('pointermove', moveDrag);
	canvas.addEventListener('pointerup', endDrag);
	canvas.addEventListener('pointercancel', () => {
		drag = null;
		band.hidden = true;
	});
	canvas.addEventListener('wheel', ev => wheel(canvas, ev), {passive: false});
}

// Keys.
const help = page.keysBox(document.body, [
	['wheel, + −', 'zoom; with Shift, the wheel moves in time'],
	['drag', 'zoom to a range'],
	['← →', 'earlier, later'],
	['↑ ↓', 'go to another thread'],
	['n, N', 'next, previous span of the thread, with its stack'],
	['z', 'zoom to the chosen span'],
	['0, Home', 'show everything'],
	['click on a state', 'hide it, or show it again'],
	['Esc', 'end what was chosen, then the zoom'],
	['?', 'this'],
]);
help.hidden = true;
function toggleHelp(show = help.hidden) {
	help.hidden = !show;
}
help.addEventListener('click', () => toggleHelp(false));

function goRow(by) {
	const i = current ? current.i + by : 0;
	if (rows[i])
		makeCurrent(rows[i], true);
}

function zoomToChosen() {
	if (!chosen)
		return;
	const s = chosen.row.spans, start = s.start[chosen.i], len = Math.max(s.len[chosen.i], MIN_VIEW);
	setView(start - len / 2, start + len * 3 / 2);
}

function escape() {
	if (!help.hidden)
		toggleHelp(false);
	else if (chosen)
		chooseNothing();
	else
		setView(FROM, TO);
}

const actions = {
	'+': () => zoomAt(0.5, 0.5), '=': () => zoomAt(0.5, 0.5), '-': () => zoomAt(0.5, 2), '−': () => zoomAt(0.5, 2),
	ArrowLeft: () => pan(-0.2), ArrowRight: () => pan(0.2), ArrowUp: () => goRow(-1), ArrowDown: () => goRow(1),
	n: () => step(1), N: () => step(-1), z: zoomToChosen, 0: () => setView(FROM, TO), Home: () => setView(FROM, TO),
	'?': () => toggleHelp(), Escape: escape,
};
window.addEventListener('keydown', ev => {
	const action = actions[ev.key];
	if (!action || ev.ctrlKey || ev.metaKey || ev.altKey)
		return;
	ev.preventDefault();
	action();
});

// The zoom is in the URL, so that it can be passed on.
function save() {
	const hash = isWhole() ? '' : `${Math.round(view.from)}-${Math.round(view.to)}`;
	try {
		if (location.hash.slice(1) !== hash)
			history.replaceState(null, '', '#' + hash);
	} catch (e) {
		// a sandboxed frame
	}
}

function load() {
	const [, from, to] = /^#(\d+)-(\d+)$/.exec(location.hash) || [null, FROM, TO];
	setView(+from, +to);
}

readColors();
page.onColors(() => {
	readColors();
	drawNow();
});
window.addEventListener('resize', draw);
window.addEventListener('hashchange', load);
load();
chooseNothing();
for (const row of rows)
	observer.observe(row.e);
window.timeline = {about, rows, view, nodes, setView, choose, gather: row => gather(row.spans, view.from, view.to, 1, null),
	get chosen() { return chosen; }, get current() { return current; }};
})();
