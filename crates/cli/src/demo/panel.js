// The panel: a packet's fields and bytes, an event, or the step as the programs saw it.

const esc = (text) => String(text).replace(/[&<>"]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;", '"': "&quot;" })[c]);
const hue = (nth) => (nth * 67 + 215) % 360;
const qp = (n) => `QP 0x${n.toString(16)}`;

/** What fields are for, in a few words. */
const WORDS = {
  opcode: "What the packet is: the kind of connection, the operation, and its place in the message.",
  psn: "Packet sequence number, 24 bits. Each packet of a request takes the next one; a gap means a loss.",
  dest_qp: "The queue pair at the receiver that this packet is for.",
  ack_req: "The sender asks for an acknowledgement of this packet.",
  solicited: "The receiver's program is to be woken when the message is complete.",
  mig_req: "Path migration state; 1 where no second path is used.",
  pad: "Zero bytes after the payload that make its length a multiple of four.",
  version: "Version of the transport header: always 0.",
  pkey: "Partition key: which group of machines may talk; 0xffff is the one for all.",
  fecn: "Set where the network was congested on the way.",
  becn: "Tells the sender that the network was congested.",
  va: "The address in the receiver's memory.",
  rkey: "The key that allows access to that memory; the receiver gave it out.",
  length: "Bytes.",
  syndrome: "ACK, RNR NAK or NAK, with credits, a time to wait or a reason.",
  msn: "Message sequence number: how many messages the receiver has completed.",
  credits: "How many more messages the receiver has posted receives for.",
  original: "What stood in memory before the atomic.",
  swap_or_add: "The number to put there, or to add.",
  compare: "The swap happens only if this stands there.",
  qkey: "Key of a datagram: the receiver drops those that show another.",
  src_qp: "The queue pair that sent the datagram.",
  data: "Four bytes that come with the completion.",
  icrc: "Checksum over all that routers leave alone, from the IP header to the last byte.",
  payload: "The program's bytes.",
  src_port: "Chosen for each connection, so that routers spread them over their links.",
  dst_port: "4791: RoCEv2.",
  checksum: "Checks the header; 0 in UDP: the ICRC checks everything.",
  id: "IP identification. The ICRC covers it.",
  dont_fragment: "Routers must not cut the packet.",
  ttl: "Hops that are left.",
  ecn: "Congestion marking that routers may set.",
  dscp: "Traffic class.",
  total_length: "Bytes of the IP packet.",
};

function packetPanel(step, p) {
  const ops = shortOpcode(p);
  const flight = p.arrived === null ? "" : `, arrived ${since(step, p.arrived)} (${length(p.arrived - p.left)} on its way)`;
  const changes = step.events.filter((e) => e.kind === "memory" && e.packet === p.n);
  const headers = p.headers.map(([name, at, len, fields], nth) => {
    const rows = fields.map(([field, a, l, text]) =>
      `<tr data-a="${a}" data-l="${l}" data-w="${esc(field)}"><td>${esc(field.replaceAll("_", " "))}</td><td class="mono">${esc(text)}</td></tr>`);
    const open = /BTH|ETH|ImmDt|payload|ICRC|DETH/.test(name) ? " open" : "";
    return `<details class="header" style="--h:${hue(nth)}"${open}><summary>${esc(name)} <span>${len} bytes at ${at}</span></summary>
      <table class="fields">${rows.join("")}</table></details>`;
  });
  return `<div class="bar"><button data-go="-1" title="Packet before (↑)">↑</button><button data-go="1" title="Next packet (↓)">↓</button>
      <button data-go="0" title="Back (Esc)">✕</button></div>
    <h2 class="k-${kind(p)}"><span class="op">${esc(ops)}</span></h2>
    <p class="sub">packet ${p.nth} of ${step.packets.length} · ${p.from} → ${other(p.from)} · to ${qp(p.qp)} · PSN ${p.psn}
      <br>left ${since(step, p.left)}${flight}</p>
    <p class="say">${esc(p.sentence)}</p>
    ${p.again ? `<p class="say again">↻ ${esc(p.again)}.</p>` : ""}
    ${p.about ? `<p class="say end">${esc(p.about)}.</p>` : ""}
    ${p.end ? `<p class="say end">✗ ${esc(p.end)}.</p>` : ""}
    ${changes.map((e) => `<h3>▤ It changed ${e.who}'s memory</h3>${memory(e.changes)}`).join("")}
    <h3>Headers and fields <span class="dim">(${esc(p.opcode)}, ${p.hex.length / 2} bytes)</span></h3>
    ${headers.join("")}
    <h3>Bytes</h3>${hexDump(p)}
    <div id="hint">Hover a field to see its bytes, or a byte to see its field.</div>`;
}

/** All bytes, sixteen a line, tinted as their headers are. */
function hexDump(p) {
  const bytes = p.hex.match(/../g) || [];
  const owner = new Array(bytes.length).fill(0);
  p.headers.forEach(([, at, len], nth) => owner.fill(nth, at, at + len));
  const lines = [];
  for (let i = 0; i < bytes.length; i += 16) {
    const row = bytes.slice(i, i + 16);
    const cells = row.map((b, j) => `<b data-i="${i + j}" style="--h:${hue(owner[i + j])}">${b}</b>`);
    const letters = row.map((b) => { const c = parseInt(b, 16); return c > 32 && c < 127 ? esc(String.fromCharCode(c)) : "·"; });
    const fill = "   ".repeat(16 - row.length);
    lines.push(`<span class="off">${i.toString(16).padStart(4, "0")}</span>  ${cells.join(" ")}${fill}  <span class="off">${letters.join("")}</span>`);
  }
  return `<div class="hex mono">${lines.join("\n")}</div>`;
}

/** Ranges of memory before and after. */
function memory(changes) {
  if (!changes.length) return `<div class="mem dim">unchanged</div>`;
  const show = (hex, whole, against) => {
    const cells = hex.match(/../g).map((b, i) => (against && against.substr(2 * i, 2) !== b ? `<u>${b}</u>` : b));
    return cells.join(" ") + (whole > hex.length / 2 ? " …" : "");
  };
  return changes.map((c) => `<div class="mem mono"><i>bytes +${c.at} to +${c.at + c.len - 1}: ${c.len} bytes</i>
<i>before</i> ${show(c.before, c.len)}
<i>after </i> ${show(c.after, c.len, c.before)}</div>`).join("");
}

function eventPanel(step, e) {
  const table = (rows) => `<table class="fields">${rows.map(([k, v]) => `<tr data-w="${k}"><td>${k}</td><td class="mono">${esc(v)}</td></tr>`).join("")}</table>`;
  const bar = `<div class="bar"><button data-go="0" title="Back (Esc)">✕</button></div>`;
  const head = (title) => `${bar}<h2>${title}</h2><p class="sub">${e.who} · ${qp(e.qp)} · ${since(step, e.at)}</p>`;
  switch (e.kind) {
    case "send": return `${head("▸ A request is posted")}<p class="say">${e.who}'s program hands its NIC a work request and goes on;
      the NIC sends when it can, and tells by a completion when it is done.</p>${table([["wr_id", e.wr_id], ["request", e.words]])}`;
    case "recv": return `${head("▸ A receive is posted")}<p class="say">${e.who}'s program says where an incoming message may go.
      Receives are used in the order in which they were posted.</p>${table([["wr_id", e.wr_id], ["receive", e.words]])}`;
    case "cqe": return `${head(e.ok ? "✓ A completion" : "✗ A completion with an error")}<p class="say">${e.who}'s program finds it in its
      completion queue (CQ).</p><p class="say ${e.ok ? "" : "end"}">${esc(e.explain)}</p>
      ${table([["wr_id", e.wr_id], ["status", e.status], ["opcode", e.opcode], ["byte_len", e.byte_len], ["qp_num", e.qp]])}`;
    default: {
      const p = DATA.packets[e.packet];
      return `${head("▤ Memory changes")}<p class="say">${e.who}'s NIC puts the bytes of
        <a href="#" data-pick="${p.nth}">packet ${p.nth}, ${esc(shortOpcode(p))}</a> straight into the program's memory.</p>${memory(e.changes)}`;
    }
  }
}

/** What the programs saw, side by side, and what their memory holds in the end. */
function stepPanel(step) {
  const list = (who) => step.events.map((e, nth) => [e, nth]).filter(([e]) => e.who === who && e.kind !== "sum").map(([e, nth]) => {
    const [mark, cls, words] = chipOf(e);
    const colour = { "c-ok": "good", "c-bad": "bad" }[cls] || "";
    const more = e.kind === "cqe" && e.byte_len ? `, ${e.byte_len} bytes` : "";
    return `<li data-event="${nth}"><time>${since(step, e.at)}</time><span class="${colour}">${mark}</span> ${esc(e.words ? `post ${e.kind === "recv" ? "receive: " : ""}${e.words}` : words + more)}</li>`;
  }).join("") || `<li class="dim">nothing</li>`;
  const sums = step.events.filter((e) => e.kind === "sum");
  const few = step.pairs.length === 1;
  const ends = (who) => sums.filter((e) => e.who === who && (few || e.changes.length)).slice(-6)
    .map((e) => (few ? "" : `<div class="dim">${qp(e.qp)}</div>`) + memory(e.changes)).join("");
  const verdict = step.passed ? `<span class="good">✓</span>` : `<span class="bad">✗</span>`;
  const n = step.packets.length;
  return `<h2>${verdict} ${esc(step.result)}</h2>
    <p class="sub">${n} packet${n === 1 ? "" : "s"}, ${step.lost} lost, ${length(step.micros)}. Look at this: ${esc(step.look)}.</p>
    <h3>What the programs did and saw</h3>
    <div class="two"><div><b>alice</b><ul class="list">${list("alice")}</ul></div><div><b>bob</b><ul class="list">${list("bob")}</ul></div></div>
    <h3>What changed in their memory</h3>
    <div><b>alice</b>${ends("alice")}</div><div><b>bob</b>${ends("bob")}</div>
    <div id="hint">Click a packet to see what it says. <kbd>?</kbd> explains the picture.</div>`;
}

/** Lights the bytes of a field and the field itself; `null` puts them out. */
function light(panel, row) {
  panel.querySelectorAll(".lit").forEach((e) => e.classList.remove("lit"));
  const hint = panel.querySelector("#hint");
  if (!row) return;
  row.classList.add("lit");
  const [a, l] = [Number(row.dataset.a), Number(row.dataset.l)];
  if (l > 0) for (let i = a; i < a + l; i++) panel.querySelector(`[data-i="${i}"]`)?.classList.add("lit");
  const word = WORDS[row.dataset.w];
  if (hint) hint.innerHTML = `<b>${esc(row.dataset.w.replaceAll("_", " "))}</b> ${l ? `${l} byte${l > 1 ? "s" : ""} at ${a}. ` : ""}${esc(word || "")}`;
}

/** The field that a byte belongs to: the shortest one. */
function fieldOf(panel, i) {
  const rows = [...panel.querySelectorAll("tr[data-a]")].filter((r) => Number(r.dataset.a) <= i && i < Number(r.dataset.a) + Number(r.dataset.l));
  return rows.sort((x, y) => x.dataset.l - y.dataset.l)[0] || null;
}
