// The page: what is shown, the picture, and what the reader does.

const DATA = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
const state = { step: 0, packet: -1, event: -1, mode: "even", zoom: 1 };
let made = null;

DATA.packets.forEach((p, n) => { p.n = n; });
DATA.steps.forEach((step, nth) => {
  step.packets = DATA.packets.filter((p) => p.step === nth);
  step.packets.forEach((p, i) => { p.nth = i + 1; });
  step.events = DATA.events.filter((e) => e.step === nth);
  const times = [...step.packets.map((p) => p.left), ...step.events.map((e) => e.at)];
  step.begin = Math.min(...times, Infinity) === Infinity ? step.start : Math.min(...times);
});

const now = () => DATA.steps[state.step];

// --- the picture -------------------------------------------------------------------------------

/** Columns, by the room there is. */
function columns(width) {
  // The arrows first: their labels need room.
  const chips = Math.min(Math.max((width - 66 - 340) / 2, 26), 200);
  const axis = width > 560 ? 66 : 52;
  return { axis, chips, a: axis + chips, b: width - chips - 8 };
}

/** Where a height of the layout stands in the zoomed picture. Its margin does not grow. */
const place = (y) => MARGIN + (y - MARGIN) * state.zoom * made.fill;

function relayout() {
  const step = now();
  const room = Math.max($("view").clientHeight, 200);
  made = state.mode === "even" ? even(step) : trueTime(step, room);
  // A short step fills the room; a long one has the rows it needs.
  made.fill = state.mode === "even" ? Math.min(Math.max(room / made.height, 1), 1.8) : 1;
  const height = place(made.height);
  $("tall").style.height = `${Math.max(height, room)}px`;
  draw();
}

function lanes(col) {
  const step = now();
  const pairs = step.pairs;
  const qps = (who) => (pairs.length === 1 ? qp(pairs[0][who]) : `${pairs.length} QPs, ${qp(pairs[0][who])} to ${qp(pairs[pairs.length - 1][who])}`);
  const kinds = [...new Set(pairs.map((p) => p.kind))].join(", ");
  const lane = (who, x) => `<div style="left:${x}px"><b>${who}</b> <span>${step.addresses[who]}</span><small>${kinds} ${qps(who)}</small></div>`;
  $("lanes").innerHTML = lane("alice", Math.max(col.a, 90)) + lane("bob", Math.min(col.b, $("view").clientWidth - 90));
}

function draw() {
  const view = $("view");
  const [width, height, top] = [view.clientWidth, view.clientHeight, view.scrollTop];
  const art = $("art");
  art.setAttribute("width", width);
  art.setAttribute("height", height);
  const col = columns(width);
  lanes(col);
  const z = state.zoom * made.fill;
  const at = (y) => place(y) - top;
  const seen = (y0, y1) => Math.max(y0, y1) > -40 && Math.min(y0, y1) < height + 40;
  const out = [];
  const step = now();
  const end = Math.min(at(made.height), height);
  axis(out, col, width, height, at);
  for (const g of made.gaps) {
    const y = at(g.y);
    if (!seen(y, y + g.h * z)) continue;
    out.push(`<rect class="gap" x="${col.axis}" y="${y}" width="${width - col.axis}" height="${g.h * z}"/>`,
      `<text class="gaptext" text-anchor="middle" x="${(col.a + col.b) / 2}" y="${y + (g.h * z) / 2 + 4}">⋮ ${g.text} ⋮</text>`);
  }
  for (const x of [col.a, col.b]) out.push(`<line class="life" x1="${x}" x2="${x}" y1="0" y2="${end}"/>`);
  const taken = { alice: [], bob: [], close: [], chipalice: [], chipbob: [] };
  const free = (side, y, room, force) => {
    if (!force && taken[side].some((t) => Math.abs(t - y) < room)) return false;
    taken[side].push(y);
    return true;
  };
  const visible = step.packets.filter((p) => seen(at(p.y0), at(p.y1)));
  // The one that is picked has its label before all others, and stands above them.
  visible.sort((p, q) => (p.nth === state.packet) - (q.nth === state.packet));
  const picked = visible[visible.length - 1];
  if (picked && picked.nth === state.packet) {
    for (const line of picked.tells || picked.end ? [0, 16] : [0]) free(picked.from, at(picked.y0) + line, 0, true);
  }
  // Labels lie above all arrows.
  const tags = [];
  for (const p of visible) {
    const on = p.nth === state.packet;
    const line = lineOf(p, col, at);
    out.push(arrow(p, line, on, line.slope > 45 && visible.length > 24));
    tags.push(tag(p, line, on, free));
  }
  out.push(...tags);
  step.events.forEach((e, nth) => {
    if (e.kind !== "sum" && seen(at(e.y), at(e.y))) out.push(chip(e, nth, col, at, width, free));
  });
  art.innerHTML = out.join("");
}

function axis(out, col, width, height, at) {
  if (made.at) {
    const from = made.begin + (MARGIN - at(MARGIN)) / state.zoom / made.scale - MARGIN / made.scale;
    const to = from + (height + MARGIN) / state.zoom / made.scale + MARGIN / made.scale;
    for (const t of ticks(made.scale * state.zoom, made.begin, from, Math.min(to, made.end), 70)) {
      const y = at(made.at(made.begin + t));
      out.push(`<line class="tick" x1="${col.axis}" x2="${width}" y1="${y}" y2="${y}"/>`,
        `<text class="axis" text-anchor="end" x="${col.axis - 6}" y="${y + 4}">${length(t)}</text>`);
    }
    return;
  }
  let last = -99;
  for (const m of made.marks) {
    const y = at(m.y);
    if (y - last < 20 || y < -20 || y > height + 20) continue;
    last = y;
    out.push(`<text class="axis" text-anchor="end" x="${col.axis - 6}" y="${y + 4}">${m.text}</text>`);
  }
}

/** Where a packet's arrow runs. */
function lineOf(p, col, at) {
  const d = p.from === "alice" ? 1 : -1;
  const [x0, far] = d > 0 ? [col.a, col.b] : [col.b, col.a];
  const lost = p.arrived === null;
  const y0 = at(p.y0);
  // Its label ends before the cross.
  const x1 = lost ? x0 + (far - x0) * 0.8 : far;
  const y1 = lost ? y0 + Math.max(14, 20 * state.zoom) : at(p.y1);
  const slope = (Math.atan2(y1 - y0, Math.abs(x1 - x0)) * 180) / Math.PI;
  return { d, x0, y0, x1, y1, lost, slope, turn: slope < 24 ? slope * d : 0 };
}

function arrow(p, { d, x0, y0, x1, y1, lost, slope }, on, faint) {
  const ends = `x1="${x0}" y1="${y0}" x2="${x1}" y2="${y1}"`;
  const parts = [`<line class="hit" ${ends}/><line class="shaft" ${ends}/>`];
  if (faint) {
    // Among many on their way at once only the ends are drawn in full.
    const k = 26 / Math.hypot(x1 - x0, y1 - y0);
    const [dx, dy] = [(x1 - x0) * k, (y1 - y0) * k];
    parts.push(`<path class="ends" d="M${x0} ${y0}l${dx} ${dy}M${x1} ${y1}l${-dx} ${-dy}"/>`);
  }
  if (lost || p.end) {
    const [cx, cy] = lost ? [x1, y1] : [x1 - 9 * d, y1 - (9 * (y1 - y0)) / Math.max(Math.abs(x1 - x0), 1)];
    parts.push(`<path class="cross" d="M${cx - 6} ${cy - 6}l12 12m0 -12l-12 12"/>`);
  } else {
    parts.push(`<path class="head" transform="translate(${x1} ${y1}) rotate(${d > 0 ? slope : 180 - slope})" d="M0 0l-11 -5v10z"/>`);
  }
  return `<g class="pkt k-${kind(p)}${faint ? " faint" : ""}${on ? " on" : ""}" data-packet="${p.nth}">${parts.join("")}</g>`;
}

/** A packet's label at its tail, along the arrow unless that is steep. */
function tag(p, { d, x0, y0, x1, y1, lost, turn }, on, free) {
  const near = d > 0 ? "start" : "end";
  const along = (x, y, dx, dy, anchor) => `transform="translate(${x} ${y}) rotate(${turn})" x="${dx}" y="${dy}" text-anchor="${anchor}"`;
  const parts = [];
  // Where rows are close the labels of both sides would meet.
  const close = state.zoom < 0.8 || state.mode === "true";
  const told = on || (close ? free("close", y0, 17, false) : free(p.from, y0, 15, false));
  const noted = () => on || (state.zoom >= 0.8 && (!close || free("close", y0 + 18, 15, false)));
  if (told) {
    const size = p.len ? ` ${p.len} B` : "";
    const ask = p.ack_req && kind(p) !== "ack" ? ` <tspan class="ask">AckReq</tspan>` : "";
    const again = p.again ? `<tspan class="note">↻</tspan> ` : "";
    parts.push(`<text class="halo" ${along(x0, y0, 12 * d, turn ? -5 : 4, near)}>${again}<tspan class="op">${esc(shortOpcode(p))}</tspan> <tspan class="dim">psn ${p.psn}</tspan>${size}${ask}</text>`);
    if (p.tells && noted()) parts.push(`<text class="halo note" ${along(x0, y0, 12 * d, turn ? 14 : 20, near)}>↻ ${esc(p.again)}</text>`);
  }
  if (lost) {
    parts.push(`<text class="halo note bad" x="${x1 + 12 * d}" y="${y1 + 4}" text-anchor="${near}">lost</text>`);
  } else if (p.end && told && (on || (p.tellsEnd && noted()))) {
    const brief = p.end.replace(/ \(.*\)$/, "").replace(/ by \w+/, "").split(",")[0];
    const dy = (turn ? 14 : 20) + (p.tells ? 15 : 0);
    parts.push(`<text class="halo note bad" ${along(x0, y0, 12 * d, dy, near)}>✗ ${esc(brief)}</text>`);
  }
  return `<g class="tag k-${kind(p)}" data-packet="${p.nth}">${parts.join("")}</g>`;
}

/** What a program did or saw, beside its line. */
function chip(e, nth, col, at, width, free) {
  const [mark, cls, words] = chipOf(e);
  const on = state.event === nth;
  const left = e.who === "alice";
  const y = at(e.y);
  if (!free(`chip${e.who}`, y, 20, on)) return "";
  const room = col.chips - 22;
  const most = Math.floor((room - 24) / 7.3);
  const text = most < 4 ? "" : words.length > most ? `${words.slice(0, most - 1)}…` : words;
  const w = most < 4 ? 18 : Math.min(room, 26 + text.length * 7.3);
  const x = left ? col.a - 9 - w : col.b + 9;
  return `<g class="chip ${cls}${on ? " on" : ""}" data-event="${nth}"><title>${esc(words)}</title>
    <rect x="${x}" y="${y - 10}" width="${w}" height="20" rx="5"/>
    <text x="${x + 5}" y="${y + 4}"><tspan class="mark">${mark}</tspan> ${esc(text)}</text></g>`;
}

// --- what is shown -----------------------------------------------------------------------------

function list() {
  const failed = DATA.steps.filter((s) => !s.passed).length;
  $("verdict").innerHTML = failed
    ? `<span class="bad">${failed} of ${DATA.steps.length} failed</span>`
    : `<span class="good">all ${DATA.steps.length} passed</span>`;
  $("steps").innerHTML = DATA.steps.map((s, nth) => `<li data-step="${nth}"${nth === state.step ? ' aria-current="step"' : ""}>
    <span class="${s.passed ? "good" : "bad"}">${s.passed ? "✓" : "✗"}</span> <span class="name">${nth + 1}. ${esc(s.title)}</span>
    <span class="result">${esc(s.result)}</span></li>`).join("");
  $("steps").querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
}

function panel() {
  const step = now();
  const [p, e] = [step.packets[state.packet - 1], step.events[state.event]];
  $("panel").classList.toggle("picked", Boolean(p || e));
  $("panel").innerHTML = p ? packetPanel(step, p) : e ? eventPanel(step, e) : stepPanel(step);
  $("panel").scrollTop = 0;
}

function remember() {
  const parts = [`step=${state.step + 1}`];
  if (state.packet > 0) parts.push(`packet=${state.packet}`);
  if (state.event >= 0) parts.push(`event=${state.event + 1}`);
  if (state.mode === "true") parts.push("time=true");
  if (state.zoom !== 1) parts.push(`zoom=${state.zoom.toFixed(2)}`);
  history.replaceState(null, "", `#${parts.join("&")}`);
}

function recall() {
  const given = new URLSearchParams(location.hash.slice(1));
  const number = (key, most) => Math.min(Math.max(Math.round(Number(given.get(key)) || 0), 0), most);
  state.step = Math.max(number("step", DATA.steps.length), 1) - 1;
  state.packet = number("packet", now().packets.length) || -1;
  state.event = number("event", now().events.length) - 1;
  state.mode = given.get("time") === "true" ? "true" : "even";
  state.zoom = Math.min(Math.max(Number(given.get("zoom")) || 1, 0.1), 200);
  if (given.get("theme")) theme(given.get("theme"));
}

function show() {
  const step = now();
  $("title").textContent = `${state.step + 1}. ${step.title}`;
  $("story").textContent = step.story;
  for (const name of ["even", "true"]) $(name).setAttribute("aria-pressed", state.mode === name);
  const kinds = new Set(step.packets.map(kind));
  const names = { send: "SEND", write: "WRITE", read: "READ and answer", atomic: "atomic and answer", ack: "ACK", rnr: "RNR NAK", nak: "NAK" };
  $("legend").innerHTML = Object.entries(names).filter(([k]) => kinds.has(k)).map(([k, name]) =>
    `<span class="k-${k}"><i style="border-color:var(--c);border-top-style:${/ack|nak|rnr/.test(k) ? "dashed" : "solid"}"></i>${name}</span>`).join("") +
    "<span>▸ posted</span><span>▤ memory changes</span><span>✓ ✗ completion</span>";
  list();
  panel();
  relayout();
}

function pick(packet, event = -1) {
  state.packet = packet;
  state.event = event;
  panel();
  const item = packet > 0 ? now().packets[packet - 1] : now().events[event];
  const view = $("view");
  if (item) {
    const y = place(packet > 0 ? item.y0 : item.y);
    if (y < view.scrollTop + 30 || y > view.scrollTop + view.clientHeight - 60) view.scrollTop = y - view.clientHeight / 2;
  }
  draw();
  remember();
}

function go(step) {
  if (step < 0 || step >= DATA.steps.length) return;
  Object.assign(state, { step, packet: -1, event: -1, zoom: 1 });
  $("view").scrollTop = 0;
  show();
  remember();
}

function zoom(by, y = $("view").clientHeight / 2) {
  const before = state.zoom;
  state.zoom = by === 0 ? 1 : Math.min(Math.max(before * by, state.mode === "even" ? 0.15 : 1), state.mode === "even" ? 4 : 2000);
  const view = $("view");
  const to = MARGIN + (view.scrollTop + y - MARGIN) * (state.zoom / before) - y;
  relayout();
  view.scrollTop = to;
  draw();
  remember();
}

function mode(to = state.mode === "even" ? "true" : "even") {
  state.mode = to;
  state.zoom = 1;
  show();
  pick(state.packet, state.event);
}

function theme(name) {
  const dark = name ? name === "dark" : document.documentElement.dataset.theme !== "dark";
  document.documentElement.dataset.theme = dark ? "dark" : "light";
}

// --- what the reader does ----------------------------------------------------------------------

const near = (event, key) => event.target.closest?.(`[data-${key}]`)?.dataset[key];

$("steps").addEventListener("click", (e) => { const s = near(e, "step"); if (s) go(Number(s)); });
$("panel").addEventListener("click", (e) => {
  const [by, to, event] = [near(e, "go"), near(e, "pick"), near(e, "event")];
  if (by !== undefined) move(Number(by));
  else if (to !== undefined) { e.preventDefault(); pick(Number(to)); }
  else if (event !== undefined) pick(-1, Number(event));
});
$("panel").addEventListener("mouseover", (e) => {
  const byte = near(e, "i");
  const row = byte === undefined ? e.target.closest("tr[data-w]") : fieldOf($("panel"), Number(byte));
  if (row || e.target.closest(".hex, .fields")) light($("panel"), row);
});
$("panel").addEventListener("mouseleave", () => light($("panel"), null));

/** To the packet before or after; 0 goes back to the step. */
function move(by) {
  const count = now().packets.length;
  if (by === 0) pick(-1);
  else if (count) pick(state.packet < 1 ? (by > 0 ? 1 : count) : Math.min(Math.max(state.packet + by, 1), count));
}

const view = $("view");
const fingers = new Map();
let drag = null;
view.addEventListener("scroll", () => requestAnimationFrame(draw));
view.addEventListener("wheel", (e) => {
  if (!e.ctrlKey && !e.metaKey) return;
  e.preventDefault();
  zoom(Math.exp(-e.deltaY / 300), e.clientY - view.getBoundingClientRect().top);
}, { passive: false });
view.addEventListener("pointerdown", (e) => {
  fingers.set(e.pointerId, e);
  if (e.pointerType === "mouse" && e.button === 0) drag = { y: e.clientY, top: view.scrollTop, moved: false };
});
view.addEventListener("pointermove", (e) => {
  if (fingers.size === 2 && fingers.has(e.pointerId)) {
    const spread = () => { const [a, b] = [...fingers.values()]; return Math.hypot(a.clientX - b.clientX, a.clientY - b.clientY); };
    const before = spread();
    fingers.set(e.pointerId, e);
    zoom(spread() / Math.max(before, 1), e.clientY - view.getBoundingClientRect().top);
  } else if (drag) {
    drag.moved ||= Math.abs(e.clientY - drag.y) > 4;
    if (drag.moved) { view.classList.add("drag"); view.scrollTop = drag.top - (e.clientY - drag.y); }
  }
});
for (const end of ["pointerup", "pointercancel", "pointerleave"]) {
  view.addEventListener(end, (e) => { fingers.delete(e.pointerId); setTimeout(() => { drag = null; view.classList.remove("drag"); }); });
}
view.addEventListener("click", (e) => {
  if (drag?.moved) return;
  const [packet, event] = [near(e, "packet"), near(e, "event")];
  if (packet) pick(Number(packet));
  else if (event) pick(-1, Number(event));
});

$("even").onclick = () => mode("even");
$("true").onclick = () => mode("true");
$("in").onclick = () => zoom(1.4);
$("out").onclick = () => zoom(1 / 1.4);
$("fit").onclick = () => zoom(0);
$("theme").onclick = () => theme();
$("ask").onclick = () => $("help").showModal();
document.addEventListener("keydown", (e) => {
  if (e.ctrlKey || e.metaKey || e.altKey || $("help").open) return;
  const keys = {
    ArrowDown: () => move(1), ArrowUp: () => move(-1), ArrowRight: () => go(state.step + 1), ArrowLeft: () => go(state.step - 1),
    Escape: () => move(0), t: () => mode(), "+": () => zoom(1.4), "=": () => zoom(1.4), "-": () => zoom(1 / 1.4), 0: () => zoom(0),
    d: () => theme(), "?": () => $("help").showModal(),
  };
  if (keys[e.key]) { e.preventDefault(); keys[e.key](); }
});
addEventListener("resize", relayout);
addEventListener("hashchange", () => { recall(); show(); pick(state.packet, state.event); });

theme(matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light");
recall();
show();
pick(state.packet, state.event);
