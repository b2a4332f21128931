// rbpf flame graph. The picture is complete without this script, which takes its elements over: it
// fits them to the window and adds zoom, search, a legend that hides kinds of frames, and keys.
//
// A picture has one pane, or two side by side, which show the same samples in the same scale: search,
// legend and direction are common to them, but each has a zoom of its own.
'use strict';
(() => {
const svg = document.currentScript ? document.currentScript.ownerSVGElement : document.documentElement;
const standalone = svg === document.documentElement;
const holder = svg.querySelector('#frames');
const header = svg.querySelector('#top');
const panel = svg.querySelector('#panel');
const legend = svg.querySelector('#legend');
const heading = svg.querySelector('#title');
const foot = svg.querySelector('#foot text');
const TOTAL = +holder.dataset.total, ROW = +holder.dataset.row, PAD = +holder.dataset.pad;
const GUTTER = +holder.dataset.gutter || 0;
const BASELINE = 12, TEXT_PAD = 3, GAP = 0.6, FOOT = 26, LINE = 19, MIN_WIDTH = 320;

// The frames, in preorder: a frame comes after its caller and before its caller's next callee.
const frames = [], panes = [], path = [];
for (const g of holder.children) {
	const [title, rect, text] = g.children;
	const d = +g.dataset.d, tip = title.textContent.split('\n');
	const f = {g, rect, text, d, x: +g.dataset.x, w: +g.dataset.w, kind: g.dataset.k,
		tip, name: tip[0], up: d ? path[d - 1] : null, shown: true, matched: false};
	if (!d)
		panes.push({i: panes.length, root: f, zoomed: f, rows: []});
	f.pane = panes[panes.length - 1];
	path[d] = f;
	frames.push(f);
}
const root = frames[0];

// What the user chose, with the zoom of each pane; the URL holds it.
let pattern = '', icicle = holder.dataset.icicle === '1';
const off = new Set();
// What the user points at: the frame under the mouse, else the one that has the focus.
let hovered = null, focused = null;
let width, top, nRows = 0, test = null;

function make(parent, name, attributes, text) {
	const e = document.createElementNS(svg.namespaceURI, name);
	for (const key in attributes)
		e.setAttribute(key, attributes[key]);
	if (text !== undefined)
		e.textContent = text;
	return parent.appendChild(e);
}

function set(e, name, value) {
	value = String(value);
	if (e.getAttribute(name) !== value)
		e.setAttribute(name, value);
}

function percent(part, whole) {
	const p = whole ? part / whole * 100 : 0;
	if (p === 0 || p === 100)
		return p + '%';
	return p < 0.005 ? '<0.01%' : p.toFixed(p < 0.995 ? 2 : 1) + '%';
}

// Text that fits, by the rules of flame_text.c.
const isWide = c => c >= 0x2e80 || c >= 0x1100 && c < 0x1160;
const ascii = s => /^[\0-\x7f]*$/.test(s);

function cells(s) {
	let n = 0;
	if (ascii(s))
		return s.length;
	for (const c of s)
		n += isWide(c.codePointAt(0)) ? 2 : 1;
	return n;
}

function fit(s, room) {
	if (room < 3)
		return '';
	if (cells(s) <= room)
		return s;
	s = s.replace(/[\w\u0080-\uffff]+::(?=[\w\u0080-\uffff])/g, '');
	if (cells(s) <= room)
		return s;
	let used = 0, end = 0;
	for (const c of s) {
		used += isWide(c.codePointAt(0)) ? 2 : 1;
		if (used >= room)
			break;
		end += c.length;
	}
	return s.slice(0, end) + '…';
}

let cell = 7.25;
function measureCell() {
	// Inside #frames it would count as a frame: only for this moment.
	const text = make(holder, 'text', {}, 'M'.repeat(50));
	cell = text.getComputedTextLength() / 50 || cell;
	text.remove();
}

function fitSans(e, s, room) {
	e.textContent = s;
	if (e.getComputedTextLength() <= room)
		return;
	let low = 0, high = s.length;
	while (low < high) {
		const mid = (low + high + 1) >> 1;
		e.textContent = s.slice(0, mid) + '…';
		if (e.getComputedTextLength() <= room)
			low = mid;
		else
			high = mid - 1;
	}
	e.textContent = low ? s.slice(0, low) + '…' : '';
}

// Structure: what hidden kinds leave. Their frames collapse into their callers.
function restructure() {
	for (const pane of panes)
		pane.rows = [];
	for (const f of frames) {
		const up = f.up, rows = f.pane.rows;
		f.off = off.has(f.kind);
		f.parent = up && up.off ? up.parent : up;
		f.row = up ? up.row + !f.off : 0;
		f.children = [];
		if (f.off)
			continue;
		if (f.parent)
			f.parent.children.push(f);
		(rows[f.row] = rows[f.row] || []).push(f);
	}
	for (const pane of panes)
		if (pane.zoomed.off)
			pane.zoomed = pane.zoomed.parent;
	nRows = Math.max(...panes.map(pane => pane.rows.length));
}

const inside = (f, z) => f.x >= z.x && f.x + f.w <= z.x + z.w;

function height() {
	return top + nRows * ROW + FOOT;
}

function rowTop(f) {
	return top + (icicle ? f.row : nRows - 1 - f.row) * ROW;
}

function drawFrames() {
	const inner = (width - 2 * PAD - (panes.length - 1) * GUTTER) / panes.length;
	const above = new Set();
	for (const pane of panes) {
		pane.left = PAD + pane.i * (inner + GUTTER);
		for (let f = pane.zoomed.parent; f; f = f.parent)
			above.add(f);
	}
	for (const f of frames) {
		const {zoomed, left} = f.pane, scale = inner / zoomed.w;
		const isAbove = above.has(f);
		f.shown = !f.off && (isAbove || f.row >= zoomed.row && inside(f, zoomed));
		f.g.style.display = f.shown ? '' : 'none';
		if (!f.shown)
			continue;
		const x = left + (isAbove ? 0 : (f.x - zoomed.x) * scale);
		const w = isAbove ? inner : f.w * scale;
		const y = rowTop(f);
		const label = w > 2 * TEXT_PAD ? fit(f.name, Math.floor((w - 2 * TEXT_PAD) / cell)) : '';
		set(f.rect, 'x', +x.toFixed(2));
		set(f.rect, 'y', y);
		set(f.rect, 'width', +(w - Math.min(GAP, w / 5)).toFixed(2));
		set(f.text, 'x', +(x + TEXT_PAD).toFixed(2));
		set(f.text, 'y', y + BASELINE);
		if (f.text.textContent !== label)
			f.text.textContent = label;
		f.g.classList.toggle('above', isAbove);
		set(f.g, 'aria-level', f.row + 1);
	}
	controls.unzoom.classList.toggle('idle', !isZoomed());
}

const isZoomed = () => panes.some(pane => pane.zoomed !== pane.root);

// Of these frames, in preorder, the share of what @pane shows; a frame within another counts once.
function share(list, pane) {
	const zoomed = pane.zoomed;
	let sum = 0, end = -1;
	for (const f of list) {
		if (f.pane !== pane || !f.shown || f.x < end)
			continue;
		const from = Math.max(f.x, zoomed.x), to = Math.min(f.x + f.w, zoomed.x + zoomed.w);
		sum += Math.max(0, to - from);
		end = f.x + f.w;
	}
	return percent(sum, zoomed.w);
}

function drawMatches() {
	const found = test ? frames.filter(f => f.matched && f.shown) : [];
	holder.classList.toggle('searching', !!test);
	for (const f of frames)
		f.g.classList.toggle('match', !!test && f.matched);
	matched.textContent = !test ? '' : !found.length ? 'no match' :
		`matched ${panes.map(pane => share(found, pane)).join(' | ')} · ${found.length} frame${found.length === 1 ? '' : 's'}`;
}

// Search: a regular expression, or the same as plain text (as in "Array#[]"); it minds case if it
// holds capitals.
function compile(s) {
	const folded = s === s.toLowerCase() || !/[A-Z]/.test(s.replace(/\\./g, ''));
	const plain = folded ? s.toLowerCase() : s;
	let re = null;
	try {
		re = new RegExp(s, folded ? 'i' : '');
	} catch (e) {
		// not one (yet): plain text
	}
	return name => re && re.test(name) ||
		(folded ? name.toLowerCase() : name).includes(plain);
}

function search(s) {
	pattern = s || '';
	test = pattern ? compile(pattern) : null;
	for (const f of frames)
		f.matched = !!test && test(f.name);
	if (input.value !== pattern)
		input.value = pattern;
	drawMatches();
	save(false);
}

function step(backwards) {
	const found = frames.filter(f => f.matched && f.shown);
	if (!found.length)
		return;
	const at = found.indexOf(focused);
	const next = at < 0 ? (backwards ? found.length - 1 : 0) : at + (backwards ? -1 : 1);
	focus(found[(next + found.length) % found.length]);
}

// Details of a frame, as in its title.
const HINT = 'Click a frame to zoom, a kind above to hide it. Press / to search, ? for all keys.';
let places = null;
const placeOf = f => [f.pane.i, f.tip[0], f.tip[1]].join('\n');
function samePlaces(f) {
	if (!places) {
		places = new Map();
		for (const g of frames) {
			const key = placeOf(g);
			if (places.has(key))
				places.get(key).push(g);
			else
				places.set(key, [g]);
		}
	}
	return places.get(placeOf(f));
}

function drawDetails() {
	const f = hovered || focused;
	const room = width - 2 * PAD;
	if (!f) {
		fitSans(details.name, HINT, room);
		details.rest.textContent = '';
		details.classList.add('idle');
		return;
	}
	const [name, ...rest] = f.tip, {zoomed, root: all} = f.pane;
	if (f !== zoomed && zoomed !== all && f.shown && !f.g.classList.contains('above'))
		rest.push(percent(f.w, zoomed.w) + ' of ' + zoomed.name);
	const same = samePlaces(f).filter(g => g.shown);
	if (same.length > 1)
		rest.push(`in ${same.length} places: ${share(same, f.pane)}`);
	details.classList.remove('idle');
	fitSans(details.name, name, room);
	fitSans(details.rest, rest.join('  ·  '), room);
}

// Header: what is in the file is put into lines anew, with the fonts that there are.
const lengths = new Map();
function measure(s, css) {
	const key = css + s;
	if (!lengths.has(key)) {
		const text = make(header, 'text', {class: css}, s);
		lengths.set(key, text.getComputedTextLength());
		text.remove();
	}
	return lengths.get(key);
}

const paragraphs = ['sub', 'warn'].map(css => {
	const lines = [...header.querySelectorAll('.' + css)];
	return {css, lines, pieces: lines.flatMap(e => e.textContent.split(' · '))};
});
const keys = [...header.querySelectorAll('.key')].map(g => ({g, kind: g.dataset.k,
	rect: g.children[1], text: g.children[2]}));

function layParagraph(p, y, room) {
	const lines = [];
	for (const piece of p.pieces) {
		const last = lines.length - 1, longer = lines[last] + ' · ' + piece;
		if (last >= 0 && measure(longer, p.css) <= room)
			lines[last] = longer;
		else
			lines.push(piece);
	}
	while (p.lines.length < lines.length)
		p.lines.push(make(header, 'text', {class: p.css, x: PAD}));
	p.lines.forEach((e, i) => {
		e.textContent = lines[i] || '';
		set(e, 'y', y + i * LINE);
	});
	return y + lines.length * LINE;
}

function layKeys(y) {
	let x = PAD + measure(legend.textContent, '') + 14;
	set(legend, 'y', y);
	for (const k of keys) {
		const w = 17 + measure(k.text.textContent, 'keytext');
		if (x > PAD && x + w > width - PAD) {
			x = PAD;
			y += 22;
		}
		set(k.rect, 'x', x);
		set(k.rect, 'y', y - 10);
		set(k.text, 'x', x + 17);
		set(k.text, 'y', y);
		set(k.area, 'x', x - 5);
		set(k.area, 'y', y - 15);
		set(k.area, 'width', w + 10);
		x += w + 16;
	}
	return y;
}

function layHeader() {
	const narrow = width < 800;
	const fieldWidth = narrow ? Math.max(90, Math.min(240, width - 2 * PAD - 166)) : 220;
	let x = width - PAD, y = narrow ? 40 : 12, subtitle = y + (narrow ? 44 : 37);
	for (const name of ['help', 'flip', 'unzoom']) {
		const w = controls[name].w;
		x -= w;
		set(controls[name], 'transform', `translate(${x} ${y})`);
		x -= 6;
	}
	x -= fieldWidth;
	set(field, 'x', x);
	set(field, 'y', y);
	set(field, 'width', fieldWidth);
	fitSans(heading, heading.dataset.full, narrow ? width - 2 * PAD : x - PAD - 20);
	if (narrow) {
		set(matched, 'x', PAD);
		set(matched, 'y', y + 42);
		set(matched, 'text-anchor', 'start');
		subtitle = y + 62;
	} else {
		set(matched, 'x', width - PAD);
		set(matched, 'y', 49);
		set(matched, 'text-anchor', 'end');
	}
	y = layParagraph(paragraphs[0], subtitle, width - 2 * PAD - (narrow ? 0 : 260));
	y = layParagraph(paragraphs[1], y, width - 2 * PAD);
	y = layKeys(y + 6) + 26;
	set(details.name, 'y', y);
	set(details.rest, 'y', y + LINE - 1);
	top = y + LINE + 10;
	set(panel, 'height', top - 2);
}

function stick() {
	if (standalone)
		set(header, 'transform', `translate(0 ${Math.max(0, window.scrollY)})`);
}

function drawSize() {
	const h = height();
	svg.setAttribute('width', width);
	svg.setAttribute('height', h);
	svg.setAttribute('viewBox', `0 0 ${width} ${h}`);
	set(foot, 'y', h - 9);
}

function measureWindow() {
	const box = standalone ? document.documentElement : svg.parentElement;
	width = Math.max(MIN_WIDTH, Math.floor(box && box.clientWidth || window.innerWidth || 1200));
}

function draw() {
	measureWindow();
	layHeader();
	drawSize();
	if (standalone && document.documentElement.clientWidth !== width) {
		measureWindow(); // the height brought a scroll bar
		layHeader();
		drawSize();
	}
	drawFrames();
	drawMatches();
	drawDetails();
	drawHelp();
	stick();
}

function reveal(f) {
	if (!standalone)
		return;
	const y = rowTop(f), above = window.scrollY + top, below = window.scrollY + window.innerHeight;
	if (y < above)
		window.scrollTo(0, y - top - ROW);
	else if (y + 2 * ROW > below)
		window.scrollTo(0, y + 3 * ROW - window.innerHeight);
	stick();
}

// What the user does.
function zoom(...list) {
	const wanted = list.filter(f => f !== f.pane.zoomed);
	if (!wanted.length)
		return;
	for (const f of wanted)
		f.pane.zoomed = f;
	drawFrames();
	drawMatches();
	drawDetails();
	reveal(wanted[0]);
	save(true);
}

function focus(f) {
	root.g.tabIndex = -1;
	if (focused)
		focused.g.tabIndex = -1;
	focused = f;
	f.g.tabIndex = 0;
	f.g.focus({preventScroll: true});
	reveal(f);
	drawDetails();
}

function move(key) {
	const f = focused && focused.shown ? focused : panes[0].zoomed;
	const row = panes.flatMap(pane => pane.rows[f.row] || []).filter(g => g.shown);
	const outwards = key === 'ArrowUp' ? !icicle : icicle;
	let to;
	if (!focused || !focused.shown)
		to = f;
	else if (key === 'ArrowLeft' || key === 'ArrowRight')
		to = row[row.indexOf(f) + (key === 'ArrowLeft' ? -1 : 1)];
	else if (outwards)
		to = f.children.filter(g => g.shown).reduce((a, b) => a && a.w >= b.w ? a : b, null);
	else
		to = f.parent;
	if (to)
		focus(to);
}

function toggleKind(kind, only) {
	const others = keys.filter(k => k.kind !== kind);
	if (only) {
		const alone = !off.has(kind) && others.every(k => off.has(k.kind));
		off.clear();
		if (!alone)
			others.forEach(k => off.add(k.kind));
	} else if (!off.delete(kind)) {
		off.add(kind);
	}
	applyKinds();
	save(false);
}

function applyKinds() {
	for (const k of keys) {
		k.g.classList.toggle('off', off.has(k.kind));
		k.g.setAttribute('aria-checked', !off.has(k.kind));
	}
	restructure();
	draw();
}

function flip() {
	icicle = !icicle;
	draw();
	scrollToRoot();
	save(false);
}

function reset() {
	zoom(...panes.map(pane => pane.root));
}

function scrollToRoot() {
	if (standalone)
		window.scrollTo(0, icicle ? 0 : height());
	stick();
}

// The URL fragment survives file:// and static hosts; where history is forbidden, all else works.
function save(isStep) {
	const u = new URLSearchParams();
	for (const {i, root: all, zoomed} of panes) {
		if (zoomed !== all) {
			u.set('x' + (i || ''), zoomed.x);
			u.set('d' + (i || ''), zoomed.d);
		}
	}
	if (pattern)
		u.set('s', pattern);
	if (off.size)
		u.set('h', [...off].sort().join('.'));
	if (icicle !== (holder.dataset.icicle === '1'))
		u.set('i', icicle ? 1 : 0);
	try {
		if (location.hash.slice(1) !== String(u))
			history[isStep ? 'pushState' : 'replaceState'](null, '', '#' + u);
	} catch (e) {
		// a sandboxed frame
	}
}

function load() {
	let u = new URLSearchParams();
	try {
		u = new URLSearchParams(location.hash.slice(1));
	} catch (e) {
		// as above
	}
	off.clear();
	for (const kind of (u.get('h') || '').split('.'))
		if (keys.some(k => k.kind === kind))
			off.add(kind);
	icicle = (u.get('i') || holder.dataset.icicle) === '1';
	for (const pane of panes) {
		const x = u.get('x' + (pane.i || '')), d = u.get('d' + (pane.i || ''));
		pane.zoomed = x !== null && frames.find(f =>
			f.pane === pane && f.x === +x && f.d === +d) || pane.root;
	}
	applyKinds();
	search(u.get('s') || '');
}

// Controls.
function onActivate(e, f) {
	e.addEventListener('click', f);
	e.addEventListener('keydown', ev => {
		if (ev.key !== 'Enter' && ev.key !== ' ')
			return;
		ev.preventDefault();
		ev.stopPropagation();
		f(ev);
	});
}

function button(id, text, hint, f) {
	const g = make(header, 'g', {id, class: 'button', role: 'button', tabindex: 0});
	make(g, 'title', {}, hint);
	const rect = make(g, 'rect', {height: 24, rx: 4});
	const label = make(g, 'text', {y: 16}, text);
	g.w = Math.ceil(label.getComputedTextLength()) + 16;
	rect.setAttribute('width', g.w);
	label.setAttribute('x', 8);
	onActivate(g, f);
	return g;
}

heading.dataset.full = svg.getAttribute('aria-label');
const controls = {
	unzoom: button('unzoom', 'Reset zoom', 'Show everything (0)', reset),
	flip: button('flip', 'Flip', 'Root at the top or at the bottom (i)', flip),
	help: button('keys', '?', 'Keys (?)', () => toggleHelp()),
};
const field = make(header, 'foreignObject', {id: 'search', height: 24});
const input = field.appendChild(document.createElementNS('http://www.w3.org/1999/xhtml', 'input'));
input.type = 'text';
input.placeholder = 'Search (/)';
input.spellcheck = false;
input.autocomplete = 'off';
input.setAttribute('aria-label', 'Search for frames: a regular expression');
const matched = make(header, 'text', {id: 'matched', role: 'status'});
const details = make(header, 'g', {id: 'details', 'aria-live': 'polite'});
details.name = make(details, 'text', {class: 'name', x: PAD});
details.rest = make(details, 'text', {x: PAD});

for (const k of keys) {
	k.area = make(k.g, 'rect', {class: 'area', height: 22, rx: 4});
	k.g.setAttribute('role', 'checkbox');
	k.g.setAttribute('tabindex', 0);
	k.g.setAttribute('aria-checked', 'true');
	onActivate(k.g, ev => toggleKind(k.kind, ev.shiftKey));
}

let timer = 0;
input.addEventListener('input', () => {
	clearTimeout(timer);
	timer = setTimeout(() => search(input.value), frames.length > 5000 ? 150 : 0);
});

// Help.
const HELP = [
	['click, Enter', 'zoom to a frame'],
	['0, Home', 'show everything'],
	['↑ ↓ ← →', 'go to caller, widest callee, neighbours'],
	['/, Ctrl-F', 'search names: regular expression or text; capitals count if there are any'],
	['n, N', 'next, previous match'],
	['Esc', 'end the search, then the zoom'],
	['i', 'root at the top or at the bottom'],
	['click on a kind', 'hide its frames (with Shift: all others)'],
	['?', 'this'],
];
const help = make(svg, 'g', {id: 'help', role: 'dialog', 'aria-label': 'Keys', display: 'none'});
make(help, 'rect', {class: 'box', height: HELP.length * 24 + 28, rx: 8});
HELP.forEach(([key, what], i) => {
	make(help, 'text', {class: 'name', x: 20, y: 32 + i * 24}, key);
	make(help, 'text', {x: 130, y: 32 + i * 24}, what);
});
let helpShown = false;

function drawHelp() {
	const w = Math.min(width - 2 * PAD, 600);
	help.setAttribute('display', helpShown ? '' : 'none');
	help.firstChild.setAttribute('width', w);
	help.setAttribute('transform', `translate(${Math.round((width - w) / 2)} ${
		(standalone ? window.scrollY : 0) + Math.min(top, 110)})`);
}

function toggleHelp(show = !helpShown) {
	helpShown = show;
	drawHelp();
}
help.addEventListener('click', () => toggleHelp(false));

// Events.
const frameOf = ev => {
	let e = ev.target;
	while (e && e.parentNode !== holder)
		e = e.parentNode;
	return e ? byElement.get(e) : null;
};
const byElement = new Map(frames.map(f => [f.g, f]));

holder.addEventListener('click', ev => {
	const f = frameOf(ev);
	if (!f)
		return;
	focus(f);
	zoom(f);
});
holder.addEventListener('mouseover', ev => {
	hovered = frameOf(ev);
	drawDetails();
});
holder.addEventListener('mouseleave', () => {
	hovered = null;
	drawDetails();
});
holder.addEventListener('focusin', ev => {
	focused = frameOf(ev) || focused;
	drawDetails();
});

window.addEventListener('keydown', ev => {
	const inField = ev.target === input;
	if ((ev.ctrlKey || ev.metaKey) && !ev.altKey && ev.key.toLowerCase() === 'f') {
		if (inField)
			return; // the second time: the browser's own
		ev.preventDefault();
		input.focus();
		input.select();
		return;
	}
	if (ev.ctrlKey || ev.metaKey || ev.altKey)
		return;
	if (ev.key === 'Escape') {
		if (helpShown)
			toggleHelp(false);
		else if (pattern || inField)
			search('');
		else
			reset();
		input.blur();
	} else if (inField) {
		if (ev.key === 'Enter') {
			search(input.value);
			input.blur();
			step(false);
		}
		return;
	} else if (ev.key === '/') {
		input.focus();
		input.select();
	} else if (ev.key === '?') {
		toggleHelp();
	} else if (ev.key === '0' || ev.key === 'Home') {
		reset();
	} else if (ev.key === 'i') {
		flip();
	} else if (ev.key === 'n' || ev.key === 'N') {
		step(ev.key === 'N');
	} else if (ev.key.startsWith('Arrow')) {
		move(ev.key);
	} else if ((ev.key === 'Enter' || ev.key === ' ') && focused && focused.shown) {
		zoom(focused);
	} else {
		return;
	}
	ev.preventDefault();
});

window.addEventListener('scroll', stick, {passive: true});
window.addEventListener('resize', draw);
window.addEventListener('popstate', load);

svg.setAttribute('role', 'document');
svg.classList.add('live');
holder.setAttribute('role', 'tree');
holder.setAttribute('aria-label', 'frames');
for (const f of frames) {
	f.g.setAttribute('role', 'treeitem');
	f.g.tabIndex = -1;
}
root.g.tabIndex = 0;
measureCell();
load();
if (isZoomed())
	reveal(panes.find(pane => pane.zoomed !== pane.root).zoomed);
else
	scrollToRoot();
svg.flame = {search, zoom, reset, flip, frames};
if (standalone)
	window.search = search;
})();
