// SPDX-License-Identifier: GPL-2.0-only
//
// `rbpf serve` with a recording: what Chromium shows of each view, that numbers are those of `rbpf report`,
// what happens when the connection is cut, and that clients which mean harm are refused.
//
// usage: node serve.mjs RECORDING [SCREENSHOT-DIR]     a recording of pages_sample
//
// Prints a line for each failure and "N passed, N failed"; fails if anything did.
import { execFileSync, spawn } from 'node:child_process';
import { readFileSync, readdirSync, readlinkSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { browser, cells, check, errors, finish, open, ready, shoot as shootInto, shows, sleep, tunnelTo } from './serve_page.mjs';

const rbpf = process.env.RBPF ?? './rbpf';
const [recording, shots] = process.argv.slice(2);

// ---- the server ----

const server = spawn(rbpf, ['serve', recording], { stdio: ['ignore', 'pipe', 'pipe'] });
let said = '';
server.stderr.on('data', d => said += d);
const url = new URL((await new Promise(done => server.stdout.once('data', done))).toString().trim());
const token = url.pathname, port = +url.port;
check(/^\/[0-9a-f]{48}\/$/.test(token), 'the token has 192 bits');
check(url.hostname === '127.0.0.1', 'it listens on the loopback');
await sleep(200);
check(said.includes(`ssh -L ${port}:127.0.0.1:${port}`), 'stderr says how ssh reaches it');
const report = (...args) => JSON.parse(execFileSync(rbpf, ['report', '--json', ...args, recording], { maxBuffer: 1 << 28 }));

// The answer to a request as it is written here.
function request(path, { method = 'GET', host = `localhost:${port}`, headers = {}, to = port } = {}) {
	return new Promise((done, fail) => {
		const rq = http.request({ port: to, path, method, headers: { Host: host, ...headers }, setHost: false, agent: false }, answer => {
			const parts = [];
			answer.on('data', d => parts.push(d));
			answer.on('end', () => done({ status: answer.statusCode, headers: answer.headers, body: Buffer.concat(parts) }));
			answer.on('error', fail);
		});
		rq.on('error', fail);
		rq.end();
	});
}
const get = (what, options) => request(token + what, options);

// What comes back for @bytes, until the server closes or @ms have passed: [text, closed].
function raw(bytes, ms) {
	return new Promise(done => {
		const socket = net.connect(port, '127.0.0.1');
		let text = '';
		const end = closed => { socket.destroy(); done([text, closed]); };
		socket.on('data', d => text += d);
		socket.on('close', () => end(true));
		socket.on('error', () => end(true));
		socket.setTimeout(ms, () => end(false));
		socket.write(bytes, () => {});
	});
}

// ---- requests ----

const pid = +execFileSync('pgrep', ['-P', String(server.pid)]).toString().trim();
const status = readFileSync(`/proc/${pid}/status`, 'utf8');
const fds = readdirSync(`/proc/${pid}/fd`);
if (process.getuid() === 0)
	check(/^Uid:\s+65534\s+65534\s+65534\s+65534/m.test(status), 'the serving process is nobody');
check(/^CapEff:\s+0+$/m.test(status) && /^CapBnd:\s+0+$/m.test(status), 'it has no capabilities');
check(/^NoNewPrivs:\s+1/m.test(status), 'it can get none');
check(/^Seccomp:\s+2/m.test(status), 'its system calls are filtered');
check(fds.length <= 8, `it has ${fds.length} open files`);

// A file may be closed between its being listed and looked at.
function isSocket(fd) {
	try {
		return readlinkSync(`/proc/${pid}/fd/${fd}`).startsWith('socket:');
	} catch {
		return false;
	}
}
const sockets = () => readdirSync(`/proc/${pid}/fd`).filter(isSocket).length;
const socketsBefore = sockets();

async function testRequests() {
	const plain = await get('');
	check(plain.status === 200 && plain.headers['content-security-policy'] && plain.headers['referrer-policy'] === 'no-referrer' &&
		plain.headers['x-content-type-options'] === 'nosniff' && plain.headers['cache-control'] === 'no-store', 'the page has its headers');
	check(!plain.headers['access-control-allow-origin'], 'no other origin may read it');
	const head = await get('state.json', { method: 'HEAD' });
	check(head.status === 200 && head.body.length === 0, 'HEAD');
	check((await get('rbpf.data')).body.equals(readFileSync(recording)), 'rbpf.data is the recording');

	const profiler = 'https://profiler.firefox.com';
	const allowed = async (what, origin) => (await get(what, { headers: { Origin: origin } })).headers['access-control-allow-origin'];
	check(await allowed('firefox.json', profiler) === profiler, 'the profiler may read its profile');
	for (const origin of ['https://evil.example', 'null', 'http://profiler.firefox.com', profiler + '.evil.example'])
		check(await allowed('firefox.json', origin) === undefined, `${origin} may not`);
	for (const what of ['', 'state.json', 'report.json', 'rbpf.data'])
		check(await allowed(what, profiler) === undefined, `the profiler may not read '${what}'`);

	const wrong = token.replace(/.(?=\/$)/, c => c === '0' ? '1' : '0');
	for (const path of ['/', '/state.json', wrong, wrong + 'state.json', token.slice(0, -1), '//' + token, token.toUpperCase().replace(/[0-9]/g, 'A')])
		check((await request(path)).status === 404, `404: ${path}`);
	check((await request('/')).body.equals((await request(wrong)).body), 'a wrong token is not told apart from none');
	for (const host of ['evil.example', `evil.example:${port}`, 'localhost.evil.example', '', '127.0.0.1.nip.io'])
		check((await get('state.json', { host })).status === 421 || host === '', `the Host '${host}' is refused`);
	for (const host of ['localhost', '127.0.0.1:1', '[::1]:8080'])
		check((await get('state.json', { host })).status === 200, `the Host ${host} is not`);
	for (const method of ['POST', 'PUT', 'DELETE', 'OPTIONS', 'TRACE', 'PROPFIND'])
		check((await get('state.json', { method })).status === 405, `${method} is refused`);
	check((await get('state.json', { headers: { 'Content-Length': '1000000000' } })).status === 413, 'a body is refused');
	for (const path of ['../state.json', '..%2f..%2fetc/passwd', '/etc/passwd', '%00', 'flame.svg%00', '.%2e/', 'flame.svg/..', 'x'.repeat(3000)])
		check((await get(path)).status === 404, `404: ${path.slice(0, 30)}`);
	for (const what of ['flame.svg?output=/tmp/x', 'flame.svg?diff=/etc/passwd', 'report.json?by=--output', 'report.json?limit=9&limit=9',
		'flame.svg?thread=%ff', 'flame.svg?from=5s&to=5s', `flame.svg?thread=${'x'.repeat(600)}`, 'flame.svg?' + 'pid=1&'.repeat(50)])
		check((await get(what)).status === 400, `400: ${what.slice(0, 40)}`);
	check((await get('report.json?by=nonsense')).status === 400, 'what a command refuses is refused');
	for (const [what, text] of [['report.json?include=nowhere', 'no sample of the recording passes'], ['report.json?sandwich=nowhere', 'no method in the recording']]) {
		const none = await get(what);
		check(none.status === 404 && none.body.toString().includes(text), `${what}: ${none.status} ${none.body}`);
	}
}

async function testHostile() {
	const before = Date.now();
	// One byte a second: closed when its time is up, though it is never idle.
	const slow = new Promise(done => {
		const socket = net.connect(port, '127.0.0.1'), text = `GET ${token}state.json HTTP/1.1\r\nHost: localhost\r\nX: `;
		let at = 0;
		const drip = setInterval(() => socket.write(text[at++] ?? 'x'), 500);
		socket.on('error', () => {});
		socket.on('close', () => { clearInterval(drip); done(Date.now() - before); });
		setTimeout(() => { clearInterval(drip); socket.destroy(); done(Infinity); }, 40000);
	});
	// Asks for much and takes nothing of it, again and again in one connection.
	const deaf = new Promise(done => {
		const socket = net.connect(port, '127.0.0.1');
		socket.pause();
		socket.on('error', () => {});
		socket.write(`GET ${token}firefox.json HTTP/1.1\r\nHost: localhost\r\n\r\n`.repeat(40));
		const look = setInterval(() => {
			if (Date.now() - before < 75000)
				return;
			clearInterval(look);
			socket.destroy();
			done();
		}, 100);
		slow.then(() => { clearInterval(look); socket.destroy(); done(); });
	});
	for (const bytes of ['GET / HTTP/1.1\r\nHost: localhost\r\nX: ' + 'x'.repeat(100000) + '\r\n\r\n', 'GET /' + 'x'.repeat(100000) + ' HTTP/1.1\r\n\r\n',
		'GET / HTTP/1.1\r\n' + 'X: y\r\n'.repeat(20000) + '\r\n', 'x'.repeat(1 << 20), '\r\n'.repeat(50000), '\0'.repeat(100000),
		`GET ${token}state.json HTTP/9.9\r\nHost: localhost\r\n\r\n`, `GET ${token}state.json HTTP/1.1\r\n\r\n`,
		`GET ${token}state.json HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nffffffff\r\n`]) {
		const [text, closed] = await raw(bytes, 3000);
		check(!text.includes('"version"') && (closed || /^HTTP\/1.. 4|^$/.test(text)), `refused: ${JSON.stringify(bytes.slice(0, 30))}`);
	}
	// 10,000 connections, some of them left hanging.
	let refused = 0;
	for (let turn = 0; turn < 100; turn++) {
		const turns = Array.from({ length: 100 }, (_, i) => new Promise(done => {
			const socket = net.connect(port, '127.0.0.1', () => {
				socket.write(i % 2 ? 'GET / HTTP/1.1\r\nHost: localhost\r\n\r\n' : 'GET /');
				setTimeout(() => { socket.destroy(); done(); }, 20);
			});
			socket.on('error', () => { refused++; done(); });
		}));
		await Promise.all(turns);
	}
	// The two that are slow and deaf stay, as does the body that the deaf one does not take. More than 48 of one address are not taken, and on a busy machine it may notice
	// only now that the last ones are gone, and take those that still wait to be taken.
	for (let i = 0; i < 600 && sockets() > socketsBefore + 2; i++)
		await sleep(100);
	check(sockets() <= socketsBefore + 2, `its connections are closed, but for ${sockets() - socketsBefore}`);
	check((await get('state.json')).status === 200, `after 10,000 connections (${refused} refused) it answers`);
	// More renders than places: all are answered, in turn.
	const many = await Promise.all(Array.from({ length: 30 }, (_, i) => get(`report.json?limit=${i + 1}`)));
	check(many.every(a => a.status === 200) && many.every((a, i) => JSON.parse(a.body).rows.length <= i + 1), '30 at once are all answered');
	const took = await slow;
	check(took > 10000 && took < 25000, `a client that sends a byte now and then is closed (${(took / 1000).toFixed(1)} s)`);
	await deaf;
	check((await get('state.json')).status === 200, 'and the server goes on');
	check(server.exitCode === null && readFileSync(`/proc/${pid}/status`, 'utf8').match(/VmRSS:\s+(\d+)/)[1] < 50000, 'its memory stays small');
}

// ---- in the browser ----

const shoot = (page, name) => shootInto(page, shots, name);

async function testViews() {
	const page = await open(url.href);
	await ready(page, 'overview');
	const fact = async name => page.locator(`[data-fact="${name}"]`).innerText();
	const all = report('--by', 'thread');
	check(await fact('samples') === all.summary.selected_samples.toLocaleString('en'), 'overview: samples');
	check(shows(await fact('CPU time'), all.summary.selected_ns), 'overview: CPU time');
	check(await fact('lost') === String(all.summary.lost) && await fact('Ruby') === all.summary.rubies.join(', '), 'overview: lost and Ruby');
	const [processes, threads] = await cells(page);
	check(threads.length === all.rows.length && threads.every((row, i) => shows(row[0], all.rows[i].total_ns) && row[4] === all.rows[i].thread), 'overview: threads are those of the report');
	const by = report('--by', 'process').rows;
	check(processes.length === by.length && processes.every((row, i) => shows(row[0], by[i].total_ns) && +row[2] === by[i].pid), 'overview: processes');
	await shoot(page, 'overview');

	await page.keyboard.press('3');
	await ready(page, 'table');
	const methods = report('-n', '200').rows;
	const [rows] = await cells(page);
	check(rows.length === methods.length && rows.every((row, i) => shows(row[0], methods[i].self_ns) && shows(row[2], methods[i].total_ns) && row[4] === methods[i].label), 'table: rows are those of the report');
	await page.fill('input[name=from]', '2');
	await page.fill('input[name=to]', '6');
	const answered = page.waitForResponse(r => r.url().includes('from=2s') && r.url().includes('to=6s'));
	await page.press('input[name=to]', 'Enter');
	await answered;
	await sleep(200);
	const part = report('-n', '200', '--from', '2s', '--to', '6s').rows;
	const [some] = await cells(page);
	check(some.length === part.length && some.every((row, i) => shows(row[0], part[i].self_ns)), 'table: of a range');
	await shoot(page, 'table');

	const method = part.find(r => r.label.startsWith('Order#save')).label;
	await page.locator('main tr[tabindex]', { hasText: method }).first().click();
	await ready(page, 'sandwich');
	const sandwich = report('--sandwich', '^' + method.replace(/[.*+?^${}()|[\]\\]/g, '\\$&') + '$', '-n', '50', '--from', '2s', '--to', '6s').methods[0];
	const [callers, callees] = await cells(page);
	check(callers.length === sandwich.callers.length && callers.every((row, i) => shows(row[0], sandwich.callers[i].total_ns)), 'sandwich: callers');
	check(callees.length === sandwich.callees.length && callees.every((row, i) => shows(row[0], sandwich.callees[i].total_ns)), 'sandwich: callees');
	await shoot(page, 'sandwich');
	await page.keyboard.press('Escape');

	await page.locator('#tab-requests').click();
	await ready(page, 'requests');
	await sleep(300);
	const [kinds, single] = await cells(page);
	const { requests, longest } = report('--requests');
	check(single.length === Math.min(20, longest.length) && single.every((row, i) => row[3] === longest[i].request && +row[5] === longest[i].tid), 'requests: the longest ones');
	check(single.every((row, i) => row[0].startsWith('≥') === !longest[i].length_most_ns && Math.abs(parseFloat(row[1]) - longest[i].from_ns / 1e9) < 0.0006), 'requests: when they were');
	check(kinds.length === requests.length && kinds.every((row, i) => row[7] === requests[i].request && shows(row[1], requests[i].self_ns)), 'requests are those of the report');
	const unknown = requests.filter(r => r.gc_unknown_ns && !r.gc_ns).map(r => r.request);
	check(unknown.length === 1 && kinds.every(row => (row[2] === '?') === unknown.includes(row[7])), 'GC is ? where it is not known');
	await shoot(page, 'requests');

	// What the first of them did: it alone, in its time.
	await page.locator('main table.rows').nth(1).locator('tr[tabindex]').first().click();
	await ready(page, 'flame');
	await sleep(500);
	const its = page.frames()[1];
	check(+await its.locator('#frames').getAttribute('data-total') >= longest[0].self_ns * 0.99, 'requests: a click shows what a single one did');
	check(await page.inputValue('input[name=thread]') === `^${longest[0].thread.replace(/[.*+?^${}()|[\]\\]/g, '\\$&')}$`, 'requests: of its thread');
	await page.keyboard.press('Escape');
	await page.selectOption('select[name=event]', 'cpu');

	await page.locator('#tab-waits').click();
	await ready(page, 'waits');
	await sleep(300);
	const [states, ...others] = await cells(page), owners = others.pop();
	const byState = report('--by', 'state', '--event', 'wall').rows, byPeer = report('--by', 'peer').rows.filter(r => r.peer), ofThreads = report('--states').rows;
	check(states.length === byState.length && states.every((row, i) => shows(row[0], byState[i].total_ns) && row[7].startsWith(byState[i].state)), 'waits: states are those of the report');
	check(states.every((row, i) => row[2] === (byState[i].waits ? byState[i].waits.toLocaleString('en') : '–')), 'waits: how many');
	check(states.some((row, i) => byState[i].longest_wait_ns && shows(row[6], byState[i].longest_wait_ns)), 'waits: the longest');
	check(states.every((row, i) => row[5] === '–' || shows(row[5], byState[i].p99_ns)) && states.some(row => row[5] !== '–'), 'waits: P99');
	check(byPeer.length ? others[0].length === byPeer.length && others[0].every((row, i) => shows(row[0], byPeer[i].total_ns) && row[8] === byPeer[i].peer) :
		!others.length, 'waits: peers');
	check(owners.length === ofThreads.length && owners.every((row, i) => row.at(-1) === ofThreads[i].name), 'waits: threads');
	await shoot(page, 'waits');

	// Which time is shown; views that have only one kind do not ask.
	await page.locator('#tab-table').click();
	await ready(page, 'table');
	const asked = page.waitForResponse(r => r.url().includes('event=wait'));
	await page.selectOption('select[name=event]', 'wait');
	await asked;
	await sleep(200);
	const [waiting] = await cells(page), waits = report('-n', '200', '--event', 'wait').rows;
	check(waiting.length === waits.length && waiting.every((row, i) => shows(row[0], waits[i].self_ns) && row[4] === waits[i].label), 'table: of waits');
	check(page.url().includes('event=wait'), 'the URL says which time');
	await page.selectOption('select[name=event]', 'cpu');
	await sleep(200);

	await page.locator('#tab-flame').click();
	await ready(page, 'flame');
	await sleep(500);
	const flame = page.frames()[1];
	const whole = report().summary.selected_ns;
	check(+await flame.locator('#frames').getAttribute('data-total') === whole, 'flame graph: its total is that of the report');
	check(await flame.evaluate(() => typeof flameGraph === 'function'), 'flame graph: its script runs');
	check(await flame.evaluate(() => {
		const run = document.createElementNS('http://www.w3.org/2000/svg', 'script');
		run.textContent = 'window.injected = true';
		document.documentElement.append(run);
		return !window.injected;
	}), 'flame graph: no other script does');
	errors.splice(0, errors.length, ...errors.filter(e => !e.includes('Content Security Policy')));
	await shoot(page, 'flame');
	for (const view of ['timeline', 'heatmap']) {
		await page.locator(`#tab-${view}`).click();
		await ready(page, view);
		await sleep(500);
		const frame = page.frames()[1];
		check((await frame.locator('h1').innerText()).length > 0 && await frame.locator('canvas').count() > 0, `${view}: its script has drawn`);
		await shoot(page, view);
	}
	await page.goto('about:blank');
	await page.goto(url.href + '#view=compare&from=6&base-from=0&base-to=6');
	await ready(page, 'compare');
	await sleep(500);
	const diff = page.frames()[1];
	const later = report('--from', '6s').summary, earlier = report('--to', '6s').summary;
	check(+await diff.locator('#frames').getAttribute('data-total') === later.selected_ns, 'compare: the time above');
	check((await diff.locator('#top').textContent()).includes(`another time (${earlier.selected_samples.toLocaleString('en')} samples)`), 'compare: with the other');
	await shoot(page, 'compare');
	await page.locator('#tab-data').click();
	await ready(page, 'data');
	const profile = decodeURIComponent((await page.locator('#profiler').getAttribute('href')).replace('https://profiler.firefox.com/from-url/', ''));
	check(profile.startsWith(url.href + 'firefox.json'), 'data: the link has the address of the profile');
	check(JSON.parse((await request(profile.slice(url.origin.length))).body).meta.product === 'rbpf', 'data: which is there');
	check(errors.length === 0, `no errors: ${errors.splice(0).join('; ')}`);
	await page.context().close();
	for (const options of [{ colorScheme: 'dark' }, { viewport: { width: 420, height: 800 } }]) {
		const other = await open(url.href, options);
		await ready(other, 'overview');
		check(await other.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth), 'nothing is wider than the window');
		await shoot(other, Object.keys(options)[0]);
		await other.context().close();
	}
}

// The page through a tunnel that breaks, as ssh -L does.
async function testReconnect() {
	const tunnel = await tunnelTo(port), at = tunnel.port;
	const page = await open(`http://127.0.0.1:${at}${token}`);
	await ready(page, 'overview');
	await tunnel.cut();
	await page.waitForSelector('.status[data-state=lost]', { timeout: 10000 });
	check((await page.locator('.status').innerText()).includes('The connection is cut'), 'a cut connection is said');
	await tunnel.mend();
	await page.waitForSelector('.status[data-state=still]', { timeout: 10000 });
	check(await page.locator('[data-fact=samples]').count() === 1, 'and it goes on when it is back');
	await page.context().close();
	await tunnel.cut();
	errors.splice(0, errors.length, ...errors.filter(e => !e.includes('ERR_')));
}

try {
	await testRequests();
	await testViews();
	await testReconnect();
	await testHostile();
} catch (e) {
	check(false, e.stack);
}
check(errors.length === 0, `errors: ${errors.join('; ')}`);
await browser.close();
const ended = new Promise(done => server.on('exit', done));
server.kill('SIGTERM');
check(await ended === 0, 'SIGTERM ends it with 0');

// What a forbidden system call looks like from outside: a signal.
const other = spawn(rbpf, ['serve', recording], { stdio: ['ignore', 'pipe', 'pipe'] });
let otherSaid = '';
other.stderr.on('data', d => otherSaid += d);
await new Promise(done => other.stdout.once('data', done));
const otherEnded = new Promise(done => other.on('close', done));
process.kill(+execFileSync('pgrep', ['-P', String(other.pid)]).toString().trim(), 'SIGSYS');
check(await otherEnded === 1 && otherSaid.includes('a system call that it is not allowed to'), 'a forbidden call of the serving process is said');
finish();
