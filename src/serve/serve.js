// The page of rbpf serve. What it shows it asks the server for, each time for a range of seconds: those
// of a recording, or the last ones of what is being watched, again and again.
(() => {
const about = page.json('about');
const {make, set, count, duration, percent} = page;
const TICK = 1000; // ms
// A picture, and what is of more than so many seconds, is made anew only so often: little of it changes in one.
const SHORT = 10, SLOW_TICKS = 5;
const ROWS = 200, LONGEST = 20;

// What the user chose; the part of the URL behind # holds it.
const VIEWS = {overview: 'Overview', flame: 'Flame graph', table: 'Table', sandwich: 'Sandwich', timeline: 'Timeline',
	heatmap: 'Heat map', requests: 'Requests', waits: 'Waits', compare: 'Compare', data: 'Data'};
if (!about.waits)
	delete VIEWS.waits;
const EVENTS = {cpu: 'CPU time', wall: 'CPU time and waits', wait: 'waits', caused: 'waits that it caused'};
const FILTERS = ['pid', 'thread', 'request', 'include', 'stack', 'idle'];
const choice = {view: 'overview', last: '60', from: '', to: '', 'base-from': '', 'base-to': '', sort: 'self', method: '',
	event: about.event};
for (const name of FILTERS)
	choice[name] = '';

// What the server has said: which seconds there are.
let state = {live: false, from: 0, to: 0};
let shown = null; // the range that is on the screen, in seconds: of a live page that is paused, it stays
let replaced = false; // another server answers at this address
let paused = false, connected = true, busy = false, ticks = 0, wanted = 0;

function readHash() {
	for (const [name, value] of new URLSearchParams(location.hash.slice(1)))
		if (name in choice)
			choice[name] = value;
	if (!(choice.view in VIEWS))
		choice.view = 'overview';
	if (!(choice.event in EVENTS))
		choice.event = about.event;
}

function writeHash() {
	const set_ = Object.entries(choice).filter(([, v]) => v !== '');
	history.replaceState(null, '', '#' + new URLSearchParams(set_));
}

// ---- elements ----

document.body.className = 'page serve';
const header = make(document.body, 'header', {});
make(header, 'h1', {}, about.title);
const status = make(header, 'p', {class: 'status', role: 'status'});
const tabs = make(header, 'div', {role: 'tablist', 'aria-label': 'Views'});
const bar = make(header, 'div', {class: 'bar'});
const main = make(document.body, 'main', {role: 'tabpanel', tabindex: -1});
const footer = make(make(document.body, 'footer', {}), 'p', {}, about.generator + ' · ? shows the keys');

for (const [view, text] of Object.entries(VIEWS))
	make(tabs, 'button', {type: 'button', role: 'tab', id: 'tab-' + view}, text).addEventListener('click', () => go(view));

function field(parent, name, text, attributes) {
	const label = make(parent, 'label', {}, text);
	const input = make(label, 'input', {type: 'text', name, maxlength: 512, ...attributes});
	input.addEventListener('change', () => {
		choice[name] = input.value.trim();
		changed();
	});
	return input;
}

function menu(parent, name, text, options) {
	const label = make(parent, 'label', {}, text);
	const select = make(label, 'select', {name});
	for (const [value, what] of options)
		make(select, 'option', {value}, what);
	select.addEventListener('change', () => {
		choice[name] = select.value;
		changed();
	});
	return select;
}

const inputs = {};
inputs.last = menu(bar, 'last', 'Time', [['1', 'last second'], ['10', 'last 10 s'], ['60', 'last 60 s'], ['600', 'last 10 min'], ['', 'all']]);
inputs.from = field(bar, 'from', 'from', {type: 'number', min: 0, step: 'any'});
inputs.to = field(bar, 'to', 'to', {type: 'number', min: 0, step: 'any'});
inputs.pid = field(bar, 'pid', 'Process', {placeholder: 'pid'});
inputs.thread = field(bar, 'thread', 'Thread', {placeholder: 'regex'});
inputs.request = field(bar, 'request', 'Request', {placeholder: 'regex'});
inputs.include = field(bar, 'include', 'With', {placeholder: 'method, regex'});
inputs.event = menu(bar, 'event', 'Of', Object.entries(EVENTS));
inputs.event.parentNode.hidden = !about.waits;
inputs.stack = menu(bar, 'stack', 'Frames', [['', 'mixed'], ['ruby', 'Ruby'], ['native', 'native']]);
inputs.idle = field(bar, 'idle', 'Idle in', {placeholder: 'method, regex'});
inputs.idle.parentNode.hidden = !about.waits;
make(bar, 'span', {class: 'space'});
const pause = make(bar, 'button', {type: 'button', id: 'pause', 'aria-pressed': false}, 'Pause');
pause.addEventListener('click', togglePause);
make(bar, 'button', {type: 'button', title: 'Keys (?)'}, '?').addEventListener('click', toggleKeys);

// ---- the server ----

// One that was said in words is shown; any other means that the connection was cut.
class Refusal extends Error {}

async function ask(name, parameters = {}) {
	const answer = await fetch(address(name, parameters), {cache: 'no-store', credentials: 'omit'});
	if (!answer.ok)
		throw new Refusal((await answer.text()).trim().replace(/^rbpf: error: /, ''));
	return answer.json();
}

function address(name, parameters) {
	const given = Object.entries(parameters).filter(([, v]) => v !== '' && v !== undefined && v !== null);
	return name + (given.length ? '?' + new URLSearchParams(given) : '');
}

// The parameters of all views: the range that is shown, and the filters.
function selection() {
	const p = {};
	if (shown && (shown.from > 0 || state.live))
		p.from = shown.from + 's';
	if (shown && (shown.to < state.to || state.live))
		p.to = shown.to + 's';
	for (const name of FILTERS)
		p[name] = choice[name];
	return p;
}

// Of views that show one kind of time: also which one.
const ofEvent = () => about.waits ? {...selection(), event: choice.event} : selection();

function findRange() {
	const number = (s, other) => s !== '' && isFinite(+s) && +s >= 0 ? +s : other;
	if (choice.from !== '' || choice.to !== '')
		return {from: number(choice.from, state.from), to: Math.min(number(choice.to, state.to), state.to)};
	const last = state.live || about.live ? +choice.last : 0;
	return {from: last ? Math.max(state.from, state.to - last) : state.from, to: state.to};
}

// ---- tables ----

function table(parent, columns, rows, activate) {
	const scroll = make(parent, 'div', {class: 'scroll'});
	const t = make(scroll, 'table', {class: 'rows'});
	const head = make(make(t, 'thead', {}), 'tr', {});
	for (const [name, , kind] of columns)
		make(head, 'th', {scope: 'col', class: kind || ''}, name);
	const body = make(t, 'tbody', {});
	for (const row of rows) {
		const tr = make(body, 'tr', activate ? {tabindex: 0} : {});
		for (const [, text, kind] of columns)
			make(tr, 'td', {class: kind || ''}, text(row));
		if (activate)
			page.onActivate(tr, () => activate(row));
	}
	return t;
}

const ns = key => row => row[key] ? duration(row[key]) : '–';
const exactly = name => '^' + name.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$';
const place = row => row.path ? row.path + (row.line ? ':' + row.line : '') : row.module || '';

// The value of a row is in the unit of its event: self_ns, self_bytes, self.
function valueKey(row, what) {
	return Object.keys(row).find(k => k === what || k.startsWith(what + '_') && !/_(error|samples)/.test(k));
}

const selectedKey = summary => Object.keys(summary).find(k => /^selected_(?!samples)/.test(k)) || 'selected_ns';
const unitOf = summary => selectedKey(summary).slice('selected_'.length);

function values(rows, summary) {
	const all = summary[selectedKey(summary)], unit = unitOf(summary);
	return ['self', 'total'].flatMap(what => {
		const key = rows.length ? valueKey(rows[0], what) : what;
		return [[what, row => page.amount(row[key], unit), 'n'], ['%', row => percent(row[key], all), 'n']];
	});
}

const byName = row => {
	choice.method = row.raw_label || row.label;
	go('sandwich');
};

function methodTable(parent, report) {
	return table(parent, [...values(report.rows, report.summary), ['method', row => row.label], ['where', place, 'place']],
		report.rows, byName);
}

function facts(parent, list) {
	const dl = make(parent, 'dl', {class: 'facts'});
	for (const [name, text] of list) {
		make(dl, 'dt', {}, name);
		make(dl, 'dd', {'data-fact': name}, text);
	}
}

// Single requests; a click shows what the thread of one did in its time.
function longestTable(parent, rows) {
	const length = r => r.length_most_ns ? `${duration(r.length_ns)} to ${duration(r.length_most_ns)}` : '≥ ' + duration(r.length_ns);
	const mostly = r => Object.entries(r.states || {}).filter(([, n]) => n > r.self_ns / 100).sort((a, b) => b[1] - a[1]).slice(0, 2)
		.map(([state, n]) => `${state} ${duration(n)}`).join(', ');
	make(parent, 'h2', {}, 'The longest ones');
	table(parent, [['took', length, 'n'], ['began', r => (r.from_ns / 1e9).toFixed(3) + ' s', 'n'], ['mostly', mostly], ['request', r => r.request],
		['pid', r => r.pid, 'n'], ['tid', r => r.tid, 'n'], ['thread', r => r.thread]], rows, r => {
		choice.from = inputs.from.value = (r.from_ns / 1e9).toFixed(6);
		choice.to = inputs.to.value = ((r.from_ns + (r.length_most_ns || r.length_ns)) / 1e9).toFixed(6);
		choice.request = inputs.request.value = exactly(r.request);
		choice.thread = inputs.thread.value = exactly(r.thread);
		choice.event = inputs.event.value = about.waits ? 'wall' : choice.event;
		go('flame');
	});
}

// ---- views ----

// Each draws into a new element, which takes the place of what was there when it is complete.
const draw = {
	async overview(into) {
		const all = ofEvent();
		const threads = await ask('report.json', {...all, by: 'thread', limit: 20});
		const processes = await ask('report.json', {...all, by: 'process', limit: 20});
		const s = threads.summary;
		facts(into, [
			['time', duration(s.duration_ns)], ['processes', count(s.processes)], ['threads', count(s.threads)],
			['samples', count(s.selected_samples)], [EVENTS[choice.event], duration(s.selected_ns || 0)], ['lost', count(s.lost)],
			['truncated', count(s.truncated)], ['unresolved', count(s.unresolved)], ['Ruby', s.rubies.join(', ') || 'unknown'],
			['rbpf', state.version || ''], ['recorded by', s.command],
		]);
		if (s.lost)
			make(into, 'p', {class: 'trouble'}, `${count(s.lost)} samples were lost: their time is missing`);
		make(into, 'h2', {}, 'Processes');
		table(into, [...values(processes.rows, s).slice(2), ['pid', r => r.pid, 'n'], ['process', r => r.process], ['Ruby', r => r.ruby || ''],
			...(processes.rows.some(r => r.container) ? [['container', r => r.container || '']] : [])], processes.rows, row => {
			choice.pid = inputs.pid.value = String(row.pid);
			go('table');
		});
		make(into, 'h2', {}, 'Threads');
		table(into, [...values(threads.rows, s).slice(2), ['pid', r => r.pid, 'n'], ['tid', r => r.tid, 'n'], ['thread', r => r.thread]],
			threads.rows);
	},
	async table(into) {
		const report = await ask('report.json', {...ofEvent(), sort: choice.sort, limit: ROWS});
		const line = make(into, 'div', {class: 'bar'});
		for (const by of ['self', 'total'])
			make(line, 'button', {type: 'button', 'aria-pressed': choice.sort === by}, 'by ' + by).addEventListener('click', () => {
				choice.sort = by;
				changed();
			});
		methodTable(into, report);
	},
	async sandwich(into) {
		const line = make(into, 'div', {class: 'bar'});
		field(line, 'method', 'Method', {}).value = choice.method;
		if (!choice.method) {
			make(into, 'p', {}, 'Choose a method in the table, or type its name here.');
			return;
		}
		const report = await ask('report.json', {...ofEvent(), sandwich: exactly(choice.method), limit: 50});
		for (const method of report.methods)
			make(into, 'p', {}, `${method.label} ${place(method)}: ` + ['self', 'total'].map(what =>
				`${what} ${page.amount(method[valueKey(method, what)], unitOf(report.summary))}`).join(', '));
		for (const [key, text] of [['callers', 'Called by'], ['callees', 'Calls']]) {
			make(into, 'h2', {}, text);
			for (const method of report.methods)
				table(into, neighbourColumns(method[key], report.summary), method[key], byName);
		}
	},
	async requests(into) {
		const {requests, longest, gvl_waits: waits} = await ask('requests.json', selection());
		// At least and at most; the latter is known of a recording with waits.
		const length = key => row => row[`${key}_most_ns`] ? `${duration(row[`${key}_ns`])} to ${duration(row[`${key}_most_ns`])}` : ns(`${key}_ns`)(row);
		table(into, [['seen', r => count(r.seen), 'n'], ['time', ns('self_ns'), 'n'], ['GC', r => r.gc_unknown_ns && !r.gc_ns ? '?' : ns('gc_ns')(r), 'n'], ['P50', length('p50'), 'n'],
			['P99', length('p99'), 'n'], ['waited for the GVL', r => r.states && r.states.gvl ? duration(r.states.gvl) : '–', 'n'],
			['made others wait', ns('gvl_caused_ns'), 'n'], ['request', r => r.request], ['by', r => r.framework || '']], requests, row => {
			choice.request = inputs.request.value = exactly(row.request);
			go('flame');
		});
		if (waits && waits.length)
			make(into, 'p', {}, `${count(waits.length)} pairs of requests waited for each other; report --requests lists them.`);
		if (longest && longest.length)
			longestTable(into, longest.slice(0, LONGEST));
	},
	// What threads did, whom they waited for, and each of them.
	async waits(into) {
		const all = selection();
		const states = await ask('report.json', {...all, event: 'wall', by: 'state', limit: ROWS});
		const peers = await ask('report.json', {...all, by: 'peer', limit: ROWS});
		const threads = await ask('states.json', {...all, limit: ROWS});
		const lengths = [['waits', r => r.waits ? count(r.waits) : '–', 'n'], ['mean', ns('mean_wait_ns'), 'n'], ['P50', ns('p50_ns'), 'n'],
			['P99', ns('p99_ns'), 'n'], ['longest', ns('longest_wait_ns'), 'n']];
		const marks = r => [r.state, r.gvl_held && 'holds the GVL', r.gvl_turn && 'its turn was over'].filter(Boolean).join(', ');
		table(into, [...values(states.rows, states.summary).slice(2), ...lengths, ['state', marks]], states.rows);
		const known = peers.rows.filter(r => r.peer);
		make(into, 'h2', {}, 'For whom, and for which files');
		if (known.length)
			table(into, [...values(known, peers.summary).slice(2), ...lengths, ['state', r => r.state], ['', r => r.peer]], known);
		else
			make(into, 'p', {}, 'Of no wait it is known.');
		make(into, 'h2', {}, 'Threads');
		const used = Object.keys((threads.rows[0] || {states: {}}).states).filter(state => threads.rows.some(r => r.states[state]));
		table(into, [...used.map(state => [state, r => percent(r.states[state], r.elapsed_ns), 'n']), ['pid', r => r.pid, 'n'], ['tid', r => r.tid, 'n'],
			['thread', r => r.name]], threads.rows);
	},
	async data(into) {
		const all = selection(), times = {from: all.from, to: all.to};
		const profile = new URL(address('firefox.json', all), location.href).href;
		make(into, 'h2', {}, 'The recording');
		make(make(into, 'p', {}), 'a', {href: address('rbpf.data', about.live ? times : {}), download: 'rbpf.data', id: 'recording'},
			about.live ? 'Save the recording of this time' : 'Save the recording');
		make(into, 'p', {}, 'All commands of rbpf read it: rbpf report rbpf.data');
		make(into, 'h2', {}, 'Firefox Profiler');
		make(make(into, 'p', {}), 'a', {href: 'https://profiler.firefox.com/from-url/' + encodeURIComponent(profile), target: '_blank',
			rel: 'noopener noreferrer', id: 'profiler'}, 'Open this time in profiler.firefox.com');
		make(into, 'p', {}, 'Its page then reads the profile from this address, in your browser. Its servers do not get it, but its scripts come from there.');
		make(make(into, 'p', {}), 'a', {href: address('firefox.json', all), download: 'rbpf-firefox.json'}, 'Save it for Load a profile from file');
	},
};

function neighbourColumns(rows, summary) {
	return [...values(rows, summary).slice(2), ['method', row => row.label || '(nothing)'], ['where', place, 'place']];
}

// Views that are documents of their own.
const pictures = {
	flame: () => address('flame.svg', ofEvent()),
	timeline: () => address('timeline.html', selection()),
	heatmap: () => address('heatmap.html', ofEvent()),
	compare: () => choice['base-from'] === '' || choice['base-to'] === '' ? null : address('flame.svg',
		{...ofEvent(), 'base-from': choice['base-from'] + 's', 'base-to': choice['base-to'] + 's'}),
};

// Once the user has touched a picture it stays as it is: a new one would forget what was zoomed.
let held = false;

function framed(view, into) {
	const url = pictures[view]();
	let box = main.querySelector('[data-view]');
	if (!box || box.dataset.view !== view) {
		main.replaceChildren();
		box = make(main, 'div', {'data-view': view});
		box.style.display = 'contents';
		if (view === 'compare')
			compareBar(box);
	}
	if (!url) {
		return;
	}
	const old = box.querySelector('iframe:not(.coming)');
	for (const coming of box.querySelectorAll('iframe.coming'))
		coming.remove();
	const frame = make(box, 'iframe', {title: VIEWS[view], class: old ? 'coming' : '', src: url});
	frame.addEventListener('load', () => {
		if (old)
			old.remove();
		frame.className = '';
		for (const event of ['pointerdown', 'keydown'])
			frame.contentWindow.addEventListener(event, ev => {
				held = true;
				told();
				if (event === 'keydown' && ev.altKey)
					onKey(ev);
			}, true);
	});
}

function compareBar(box) {
	const line = make(box, 'div', {class: 'bar'});
	make(line, 'span', {}, 'Compare the time above with');
	for (const [name, text] of [['base-from', 'from'], ['base-to', 'to']]) {
		inputs[name] = field(line, name, text, {type: 'number', min: 0, step: 'any'});
		inputs[name].value = choice[name];
	}
	make(line, 'button', {type: 'button', id: 'as-base', title: 'The time that is shown becomes what others are compared with'}, 'Use the time above')
		.addEventListener('click', () => {
			for (const [name, at] of [['base-from', shown.from], ['base-to', shown.to]])
				choice[name] = inputs[name].value = String(at);
			changed();
		});
}

// ---- what goes on ----

function told() {
	const range = shown && `second ${count(shown.from)} to ${count(shown.to)} of ${count(state.to)}`;
	const words = replaced ? ['Another rbpf serve is here now: open the address that it printed. This is what was shown last']
		: !connected ? ['The connection is cut; trying again'] : state.live ? [paused ? 'paused' : held && choice.view in pictures ?
		'live, but this picture stays: Pause and resume to go on' : 'live', range] : ['not live', range];
	status.textContent = words.filter(Boolean).join(' · ');
	status.classList.toggle('lost', !connected);
	status.dataset.state = !connected ? 'lost' : state.live ? paused ? 'paused' : 'live' : 'still';
	pause.hidden = !state.live;
	set(pause, 'aria-pressed', paused);
	pause.textContent = paused ? 'Go on' : 'Pause';
	inputs.last.parentNode.hidden = !state.live;
	for (const view in VIEWS)
		set(document.getElementById('tab-' + view), 'aria-selected', view === choice.view);
}

// Show @view of what there is. Of several that were asked for, the last one is shown.
async function refresh() {
	const turn = ++wanted, view = choice.view;
	if (!state.to)
		return;
	if (view in pictures) {
		framed(view);
		return;
	}
	const into = document.createElement('div');
	into.dataset.view = view;
	try {
		await draw[view](into);
	} catch (e) {
		if (!(e instanceof Refusal))
			throw e;
		make(into, 'p', {class: 'trouble'}, e.message);
	}
	// Whoever is typing into what would be replaced goes on.
	if (turn === wanted && !(main.contains(document.activeElement) && document.activeElement.tagName === 'INPUT' && main.firstChild.dataset.view === view)) {
		const row = focusedRow();
		main.replaceChildren(into);
		if (row !== null && main.querySelectorAll('tr[tabindex]')[row])
			main.querySelectorAll('tr[tabindex]')[row].focus();
	}
}

function focusedRow() {
	const rows = [...main.querySelectorAll('tr[tabindex]')], i = rows.indexOf(document.activeElement);
	return i < 0 ? null : i;
}

async function tick(force) {
	if (busy && !force)
		return;
	busy = true;
	try {
		const next = await ask('state.json');
		const other = next.live !== state.live || !connected, moved = other || next.to !== state.to;
		connected = true;
		replaced = false;
		about.live = about.live || next.live;
		state = next;
		ticks++;
		const range = findRange(), picture = choice.view in pictures;
		const due = other || ticks % SLOW_TICKS === 0 || !(picture || range.to - range.from > SHORT);
		const renew = force || (moved && due && !paused && !(picture && held) && choice.view !== 'data');
		// What is told is what is on the screen.
		if (!shown || (renew && !paused))
			shown = range;
		if (renew)
			await refresh();
	} catch (e) {
		connected = false;
		replaced = e instanceof Refusal;
	}
	busy = false;
	told();
}

function changed() {
	held = false;
	writeHash();
	if (!paused || choice.from !== '' || choice.to !== '')
		shown = findRange();
	tick(true);
}

function go(view) {
	choice.view = view;
	changed();
	main.focus({preventScroll: true});
}

function togglePause() {
	paused = !paused && state.live;
	held = false;
	tick(!paused);
	told();
}

const KEYS = [['1 … 9, 0', 'views, from left to right'], ['Space', 'pause, go on'], ['/', 'filter by method'], ['Tab, Enter', 'go to a row, open it'],
	['Esc', 'no filters, all the time'], ['?', 'these keys']];
let keys = null;
function toggleKeys() {
	if (keys) {
		keys.remove();
		keys = null;
	} else {
		keys = page.keysBox(document.body, KEYS);
		keys.addEventListener('click', toggleKeys);
	}
}

function onKey(ev) {
	if (ev.target.closest && ev.target.closest('input,select,button') && ev.key !== 'Escape' || ev.ctrlKey || ev.metaKey)
		return;
	const views = Object.keys(VIEWS);
	const number = '1234567890'.indexOf(ev.key);
	if (number >= 0 && number < views.length)
		go(views[number]);
	else if (ev.key === ' ' && state.live && !(ev.target.closest && ev.target.closest('tr')))
		togglePause();
	else if (ev.key === '/')
		inputs.include.focus();
	else if (ev.key === '?')
		toggleKeys();
	else if (ev.key === 'Escape' && keys)
		toggleKeys();
	else if (ev.key === 'Escape')
		clearFilters();
	else
		return;
	ev.preventDefault();
}

function clearFilters() {
	for (const name of [...FILTERS, 'from', 'to'])
		choice[name] = inputs[name].value = '';
	changed();
}

function fillInputs() {
	for (const name in inputs)
		inputs[name].value = choice[name];
}

document.addEventListener('keydown', onKey);
addEventListener('hashchange', () => {
	readHash();
	fillInputs();
	changed();
});
document.addEventListener('visibilitychange', () => document.hidden || tick(false));
readHash();
fillInputs();
tick(true);
setInterval(() => document.hidden || tick(false), TICK);
})();
