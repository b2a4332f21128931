// rbpf flame graph. The picture is complete without this script, which takes its elements over: it
// fits them to the window and adds zoom, search, a legend that hides kinds of frames, and keys.
//
// There are two views: all frames, or those of the program's own code alone, which have boxes of
// their own in the file. In each the trunk is folded at first: the frames next to the root that
// nearly all of the time goes through are one box then, and what it calls is right above.
//
// A picture has one pane, or two side by side, which show the same samples in the same scale: search,
// legend and direction are common to them, but each has a zoom of its own.
//
// Where colours are those of states, a box says what threads did in its time, in parts. What is hidden is
// time then, not frames: boxes are as wide as what is left of them, so that others have its width, and
// have the colour of what most of that is. The file may say of one state that it is hidden at first: of
// threads that wait for something to do.
//
// @svg is the whole document, or part of a page; of @options, `embedded` says that the URL and the keys
// pressed outside of it are not for it, and `signal` (of an AbortController) ends it.
function flameGraph(svg, {embedded = false, signal} = {}) {
const {make, set, percent, fit, onActivate} = page;
const standalone = svg === document.documentElement;
const everything = svg.querySelector('#frames');
const header = svg.querySelector('#top');
const panel = svg.querySelector('#panel');
const legend = svg.querySelector('#legend');
const heading = svg.querySelector('#title');
const foot = svg.querySelector('#foot text');
const ROW = +everything.dataset.row, PAD = +everything.dataset.pad;
const GUTTER = +everything.dataset.gutter || 0;
const BASELINE = 12, TEXT_PAD = 3, GAP = 0.6, FOOT = 26, LINE = 19, MIN_WIDTH = 320;
// The trunk: frames that each have this share of the whole, if they are so many.
const TRUNK_SHARE = 0.9, TRUNK_FRAMES = 4;

// "8:1200.4:300": by state, the time in it; without that all is of one.
function readParts({s, k, w}) {
	return s ? s.split('.').map(part => part.split(':')).map(([kind, n]) => [kind, +n]) : [[k, +w]];
}

// The frames, in preorder: a frame comes after its caller and before its caller's next callee.
function readView(holder) {
	const frames = [], panes = [], path = [];
	for (const g of holder.children) {
		const [title, rect, text] = g.children;
		const d = +g.dataset.d, tip = title.textContent.split('\n');
		const f = {g, rect, text, d, x: +g.dataset.x, w: +g.dataset.w, kind: g.dataset.k,
			tip, name: tip[0], up: d ? path[d - 1] : null, shown: true, matched: false,
			place: +g.dataset.x, parts: readParts(g.dataset), paint: g.classList[0]};
		if (!d)
			panes.push({i: panes.length, root: f, zoomed: f, rows: [], trunk: null});
		f.pane = panes[panes.length - 1];
		path[d] = f;
		frames.push(f);
	}
	return {holder, frames, panes, root: frames[0], places: null};
}
const appHolder = svg.querySelector('#app');
const allView = readView(everything), appView = appHolder && readView(appHolder);
const views = appView ? [allView, appView] : [allView];
const byState = 's' in allView.root.g.dataset;
const firstOff = everything.dataset.off || '';
const appKinds = new Set(appView ? appView.frames.map(f => f.kind) : []);

// The view that is shown, and its parts.
let view, holder, frames, panes, root;
function show(v) {
	view = v;
	({holder, frames, panes, root} = v);
	for (const other of views)
		other.holder.style.display = other === v ? 'inline' : 'none';
}
show(allView);

// What the user chose, with the zoom of each pane; the URL holds it.
let pattern = '', icicle = everything.dataset.icicle === '1', unfolded = false;
const off = new Set();
// What the user points at: the frame under the mouse, else the one that has the focus.
let hovered = null, focused = null;
let width, top, nRows = 0, test = null;

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

// The class of a box is a letter for its state, the first with the most time, and a digit for its name.
function paint(f, parts) {
	if (!f.kind || !parts.length)
		return;
	const [most] = parts.reduce((a, b) => b[1] > a[1] ? b : a);
	const to = String.fromCharCode(97 + +most) + f.paint[1];
	f.g.classList.replace(f.paint, to);
	f.paint = to;
}

// Without the time of states that are hidden: widths, and from the left places.
function divide() {
	for (const f of frames) {
		const left = f.parts.filter(([kind]) => !off.has(kind));
		f.w = left.reduce((sum, [, w]) => sum + w, 0);
		paint(f, left);
		f.x = f.up ? f.up.end : 0;
		f.end = f.x;
		if (f.up)
			f.up.end += f.w;
		else
			f.w = f.w || 1; // nothing is left
	}
}

// Structure: what hidden kinds and folded trunks leave. Frames that are not shown collapse into
// their callers.
function link() {
	for (const pane of panes)
		pane.rows = [];
	for (const f of frames) {
		const up = f.up, rows = f.pane.rows;
		f.off = f.folded || (byState ? f.d && !f.w : off.has(f.kind));
		f.parent = up && up.off ? up.parent : up;
		f.row = up ? up.row + !f.off : 0;
		f.children = [];
		if (f.off)
			continue;
		if (f.parent)
			f.parent.children.push(f);
		(rows[f.row] = rows[f.row] || []).push(f);
	}
}

// The last frame of a trunk branches, so it stays; the first one stands for all others.
function findTrunk(pane) {
	const trunk = [];
	let f = pane.root;
	pane.trunk = null;
	while ((f = f.children.find(g => g.w >= TRUNK_SHARE * pane.root.w)))
		trunk.push(f);
	if (trunk.length < TRUNK_FRAMES)
		return;
	const last = trunk[trunk.length - 1], n = trunk.length - 1;
	pane.trunk = {first: trunk[0], others: trunk.slice(1, -1), folded: false, label:
		`${n} frames that ${percent(last.w, pane.root.w)} of the time goes through: ${
		trunk[0].name} … ${trunk[n - 1].name} (click to show)`};
}

function restructure() {
	if (byState)
		divide();
	for (const f of frames)
		f.folded = false;
	link();
	for (const pane of panes) {
		if (pane.zoomed.off)
			pane.zoomed = pane.zoomed.parent;
		findTrunk(pane);
		const trunk = pane.trunk, z = pane.zoomed;
		if (!trunk || unfolded || z === trunk.first || trunk.others.includes(z))
			continue;
		trunk.folded = true;
		for (const f of trunk.others)
			f.folded = true;
	}
	link();
	nRows = Math.max(...panes.map(pane => pane.rows.length));
}

// Whether @f stands for a folded trunk, and what stands for @f in the picture.
const standsForTrunk = f => f.pane.trunk && f.pane.trunk.folded && f === f.pane.trunk.first;
const standIn = f => f.folded ? f.pane.trunk.first : f;

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
		// Of a folded trunk all is as wide as what is shown of it.
		f.counts = f.shown || f.folded && (zoomed === f.pane.root || inside(zoomed, f));
		f.g.style.display = f.shown ? '' : 'none';
		if (!f.shown)
			continue;
		const x = left + (isAbove ? 0 : (f.x - zoomed.x) * scale);
		const w = isAbove ? inner : f.w * scale;
		const y = rowTop(f);
		const name = standsForTrunk(f) ? f.pane.trunk.label : f.name;
		const label = w > 2 * TEXT_PAD ? fit(name, Math.floor((w - 2 * TEXT_PAD) / cell)) : '';
		set(f.rect, 'x', +x.toFixed(2));
		set(f.rect, 'y', y);
		set(f.rect, 'width', +(w - Math.min(GAP, w / 5)).toFixed(2));
		set(f.text, 'x', +(x + TEXT_PAD).toFixed(2));
		set(f.text, 'y', y + BASELINE);
		if (f.text.textContent !== label)
			f.text.textContent = label;
		f.g.classList.toggle('above', isAbove);
		f.g.classList.toggle('folded', !!standsForTrunk(f));
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
		if (f.pane !== pane || !f.counts || f.x < end)
			continue;
		const from = Math.max(f.x, zoomed.x), to = Math.min(f.x + f.w, zoomed.x + zoomed.w);
		sum += Math.max(0, to - from);
		end = f.x + f.w;
	}
	return percent(sum, zoomed.w);
}

const matches = () => frames.filter(f => f.matched && f.counts);

function drawMatches() {
	const found = test ? matches() : [], seen = new Set(found.map(standIn));
	holder.classList.toggle('searching', !!test);
	for (const f of frames)
		f.g.classList.toggle('match', !!test && f.matched || seen.has(f));
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

function mark() {
	for (const f of frames)
		f.matched = !!test && test(f.name);
	drawMatches();
}

function search(s) {
	pattern = s || '';
	test = pattern ? compile(pattern) : null;
	if (input.value !== pattern)
		input.value = pattern;
	mark();
	save(false);
}

// What was typed: the widest match, if it is not on the screen.
function searchTyped() {
	search(input.value);
	const found = test ? matches() : [];
	if (found.length)
		reveal(standIn(found.reduce((a, b) => a.w >= b.w ? a : b)));
}

function step(backwards) {
	const found = matches();
	if (!found.length)
		return;
	const at = found.indexOf(focused);
	const next = at < 0 ? (backwards ? found.length - 1 : 0) : at + (backwards ? -1 : 1);
	focus(found[(next + found.length) % found.length]);
}

// Details of a frame, as in its title.
const HINT = `Click a frame to zoom, a ${byState ? 'state above to take its time out' :
	'kind above to hide it'}. Press / to search, ? for all keys.`;
const APP_HINT = "The program's own code alone: the time of what it calls is its own here; " +
	"that of stacks without any is of 'all' alone. Press a for everything.";
function hint() {
	const key = keys.find(k => k.kind === firstOff);
	if (view === appView)
		return APP_HINT;
	if (!key || !off.has(firstOff))
		return HINT;
	const [name, share] = key.text.textContent.split(' ');
	return `Without ${name} (${share}): a click on it above shows it. ${HINT}`;
}
const placeOf = f => [f.pane.i, f.tip[0], f.tip[1]].join('\n');
function samePlaces(f) {
	if (!view.places) {
		view.places = new Map();
		for (const g of frames) {
			const key = placeOf(g);
			if (view.places.has(key))
				view.places.get(key).push(g);
			else
				view.places.set(key, [g]);
		}
	}
	return view.places.get(placeOf(f));
}

function drawDetails() {
	const f = hovered || focused;
	const room = width - 2 * PAD;
	if (!f) {
		fitSans(details.name, hint(), room);
		details.rest.textContent = '';
		details.classList.add('idle');
		return;
	}
	const [name, ...rest] = standsForTrunk(f) ? [f.pane.trunk.label] : f.tip;
	const {zoomed, root: all} = f.pane;
	if (f !== zoomed && zoomed !== all && f.shown && !f.g.classList.contains('above'))
		rest.push(percent(f.w, zoomed.w) + ' of ' + zoomed.name);
	if (byState && off.size)
		rest.push(percent(f.w, all.w) + ' of the states that are shown');
	const same = samePlaces(f).filter(g => g.counts);
	if (same.length > 1 && !standsForTrunk(f))
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

// From right to left, from @x on; returns where the next one would end.
function layButtons(list, x, y) {
	for (const b of list) {
		if (!b || b.style.display === 'none')
			continue;
		x -= b.w;
		set(b, 'transform', `translate(${x} ${y})`);
		x -= 6;
	}
	return x;
}

function layHeader() {
	const narrow = width < 900;
	const fieldWidth = narrow ? Math.max(90, Math.min(240, width - 2 * PAD - 166)) : 220;
	let x = width - PAD, y = narrow ? 40 : 12, subtitle = y + (narrow ? 44 : 37);
	x = layButtons([controls.help, controls.flip, controls.unzoom], x, y);
	if (narrow)
		layButtons([controls.trunk, controls.app], width - PAD, y + 31);
	else
		x = layButtons([controls.trunk, controls.app], x, y);
	x -= fieldWidth;
	set(field, 'x', x);
	set(field, 'y', y);
	set(field, 'width', fieldWidth);
	fitSans(heading, heading.dataset.full, narrow ? width - 2 * PAD : x - PAD - 20);
	if (narrow) {
		set(matched, 'x', PAD);
		set(matched, 'y', y + 47);
		set(matched, 'text-anchor', 'start');
		subtitle = y + 74;
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
	if (f.folded)
		toggleTrunk();
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
	if (view === appView && !byState && !appKinds.has(kind)) {
		toggleApp();
		return;
	}
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
		const hidden = off.has(k.kind) || view === appView && !byState && !appKinds.has(k.kind);
		k.g.classList.toggle('off', hidden);
		k.g.setAttribute('aria-checked', !hidden);
	}
	restructure();
	press(controls.trunk, panes.some(pane => pane.trunk && pane.trunk.folded));
	controls.trunk.style.display = panes.some(pane => pane.trunk) ? '' : 'none';
	if (controls.app)
		press(controls.app, view === appView);
	draw();
}

function press(b, pressed) {
	b.classList.toggle('pressed', pressed);
	b.setAttribute('aria-pressed', pressed);
}

function toggleTrunk() {
	unfolded = panes.some(pane => pane.trunk && pane.trunk.folded);
	applyKinds();
	save(false);
}

// The program's own code alone, or everything again.
function toggleApp() {
	if (!appView)
		return;
	show(view === appView ? allView : appView);
	hovered = focused = null;
	if (!byState)
		off.clear();
	applyKinds();
	mark();
	scrollToRoot();
	save(true);
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
	if (embedded)
		return;
	const u = new URLSearchParams();
	if (view === appView)
		u.set('a', 1);
	if (unfolded)
		u.set('t', 0);
	for (const {i, root: all, zoomed} of panes) {
		if (zoomed !== all) {
			u.set('x' + (i || ''), zoomed.place);
			u.set('d' + (i || ''), zoomed.d);
		}
	}
	if (pattern)
		u.set('s', pattern);
	const hidden = [...off].sort().join('.');
	if (hidden !== firstOff)
		u.set('h', hidden);
	if (icicle !== (everything.dataset.icicle === '1'))
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
		u = new URLSearchParams(embedded ? '' : location.hash.slice(1));
	} catch (e) {
		// as above
	}
	off.clear();
	for (const kind of (u.get('h') ?? firstOff).split('.'))
		if (keys.some(k => k.kind === kind))
			off.add(kind);
	icicle = (u.get('i') || everything.dataset.icicle) === '1';
	unfolded = u.get('t') === '0';
	hovered = focused = null;
	show(u.get('a') === '1' && appView || allView);
	for (const pane of panes) {
		const x = u.get('x' + (pane.i || '')), d = u.get('d' + (pane.i || ''));
		pane.zoomed = x !== null && frames.find(f =>
			f.pane === pane && f.place === +x && f.d === +d) || pane.root;
	}
	applyKinds();
	search(u.get('s') || '');
}

// Controls.
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
	app: appView && button('app-code', 'Application code',
		"The program's own code alone; the time of what it calls is added to it (a)", toggleApp),
	trunk: button('trunk', 'Fold trunk',
		'The frames next to the root that nearly all of the time goes through (t)', toggleTrunk),
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
	timer = setTimeout(searchTyped, frames.length > 5000 ? 150 : 0);
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
	['a', "the program's own code alone, or everything"],
	['t', 'fold the frames that nearly all of the time goes through, or show them'],
	byState ? ['click on a state', 'take its time out (with Shift: that of all others)'] :
		['click on a kind', 'hide its frames (with Shift: all others)'],
	['?', 'this'],
];
const help = make(svg, 'foreignObject', {id: 'help', display: 'none', height: HELP.length * 24 + 30});
page.keysBox(help, HELP);
let helpShown = false;

function drawHelp() {
	const w = Math.min(width - 2 * PAD, 600);
	help.setAttribute('display', helpShown ? '' : 'none');
	help.setAttribute('width', w);
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
	while (e && !byElement.has(e))
		e = e.parentNode;
	return e ? byElement.get(e) : null;
};
const byElement = new Map(views.flatMap(v => v.frames).map(f => [f.g, f]));

function activate(f) {
	focus(f);
	if (standsForTrunk(f))
		toggleTrunk();
	else
		zoom(f);
}

for (const v of views) {
	v.holder.addEventListener('click', ev => {
		const f = frameOf(ev);
		if (f)
			activate(f);
	});
	v.holder.addEventListener('mouseover', ev => {
		hovered = frameOf(ev);
		drawDetails();
	});
	v.holder.addEventListener('mouseleave', () => {
		hovered = null;
		drawDetails();
	});
	v.holder.addEventListener('focusin', ev => {
		focused = frameOf(ev) || focused;
		drawDetails();
	});
}

(embedded ? svg : window).addEventListener('keydown', ev => {
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
	} else if (ev.key === 'a') {
		toggleApp();
	} else if (ev.key === 't') {
		toggleTrunk();
	} else if (ev.key === 'n' || ev.key === 'N') {
		step(ev.key === 'N');
	} else if (ev.key.startsWith('Arrow')) {
		move(ev.key);
	} else if ((ev.key === 'Enter' || ev.key === ' ') && focused && focused.shown) {
		activate(focused);
	} else {
		return;
	}
	ev.preventDefault();
});

window.addEventListener('scroll', stick, {passive: true, signal});
window.addEventListener('resize', draw, {signal});
if (!embedded)
	window.addEventListener('popstate', load, {signal});

svg.setAttribute('role', 'document');
svg.classList.add('live');
for (const v of views) {
	v.holder.setAttribute('role', 'tree');
	v.holder.setAttribute('aria-label', 'frames');
	for (const f of v.frames) {
		f.g.setAttribute('role', 'treeitem');
		f.g.tabIndex = -1;
	}
	v.root.g.tabIndex = 0;
}
measureCell();
load();
if (isZoomed())
	reveal(panes.find(pane => pane.zoomed !== pane.root).zoomed);
else
	scrollToRoot();
svg.flame = {search, zoom, reset, flip, fit, get frames() { return frames; }};
if (standalone)
	window.search = search;
}
