// Where everything stands in the picture: times become heights.

/** What happens in a step, in order: packets leave and arrive, programs do and see things. */
function moments(step) {
  const all = [];
  step.packets.forEach((p) => {
    all.push({ t: p.left, rank: 2, side: p.from, leave: p });
    if (p.arrived !== null) all.push({ t: p.arrived, rank: 0, side: other(p.from), arrive: p });
  });
  step.events.forEach((e) => {
    if (e.kind !== "sum") all.push({ t: e.at, rank: 1, side: e.who, event: e });
  });
  return all.sort((a, b) => a.t - b.t || a.rank - b.rank);
}

const other = (who) => (who === "alice" ? "bob" : "alice");
/** Room above the first thing, pixels. */
const MARGIN = 24;
/** What counts as a pause worth telling of, microseconds. */
const PAUSE = 1000;

/** Heights in pixels at zoom 1, a row for each thing: order is kept, durations are not. */
function even(step) {
  let y = MARGIN;
  let last = null;
  // Where the last label, arrowhead and chip of each side stand.
  const tail = { alice: -99, bob: -99 };
  const head = { alice: -99, bob: -99 };
  const chip = { alice: -99, bob: -99 };
  // Room that the words under the last arrow need.
  const below = { alice: 0, bob: 0 };
  const again = { alice: null, bob: null };
  const ended = { alice: null, bob: null };
  const placed = new Map(step.events.filter((e) => e.kind === "memory").map((e) => [e.packet, e]));
  const out = { marks: [], gaps: [] };
  for (const m of moments(step)) {
    if (m.event?.kind === "memory") continue;
    if (last !== null && m.t - last > PAUSE) {
      out.gaps.push({ y: y + 14, h: 26, text: `${length(m.t - last)} pass` });
      y += 56;
    }
    last = m.t;
    if (m.leave) {
      y = Math.max(y + 6, tail[m.side] + 24, head[m.side] + 22);
      // Of a run of packets sent again, or dropped, for one reason the first tells it.
      m.leave.tells = m.leave.again !== null && m.leave.again !== again[m.side];
      again[m.side] = m.leave.again;
      m.leave.tellsEnd = m.leave.end !== null && m.leave.end !== ended[m.side];
      ended[m.side] = m.leave.end;
      tail[m.side] = y + (m.leave.tells ? 16 : 0) + (m.leave.tellsEnd ? 15 : 0);
      m.leave.y0 = y;
      m.leave.y1 = y + 40;
    } else if (m.arrive) {
      const memory = placed.get(m.arrive.n);
      y = Math.max(y + 4, m.arrive.y0 + 26, head[m.side] + below[m.side], memory ? chip[m.side] + 25 : 0);
      head[m.side] = m.arrive.y1 = y;
      below[m.side] = 10 + (m.arrive.tells ? 20 : 0) + (m.arrive.tellsEnd ? 20 : 0);
      if (memory) chip[m.side] = memory.y = y;
    } else {
      y = Math.max(y + 4, chip[m.side] + 25);
      chip[m.side] = y;
      m.event.y = y;
    }
    out.marks.push({ y, text: since(step, m.t) });
  }
  out.height = y + 40;
  return out;
}

/** Heights in pixels at zoom 1 where the whole step fills `room`: true to time. */
function trueTime(step, room) {
  const end = Math.max(...moments(step).map((m) => m.t), step.start + 1);
  const begin = Math.min(...moments(step).map((m) => m.t));
  const scale = Math.max(room - 80, 200) / (end - begin);
  const at = (t) => MARGIN + (t - begin) * scale;
  for (const p of step.packets) {
    p.tells = p.again !== null;
    p.tellsEnd = p.end !== null;
    p.y0 = at(p.left);
    p.y1 = p.arrived === null ? p.y0 + 20 : at(p.arrived);
  }
  for (const e of step.events) e.y = at(e.at);
  return { marks: [], gaps: [], height: room - 20, at, scale, begin, end };
}

/** Round numbers of microseconds for an axis, `px` pixels apart at least. */
function ticks(scale, begin, from, to, px) {
  const raw = px / scale;
  const ten = 10 ** Math.floor(Math.log10(raw));
  const by = [1, 2, 5, 10].map((n) => n * ten).find((n) => n >= raw);
  const out = [];
  for (let t = Math.max(0, Math.ceil((from - begin) / by)) * by; t <= to - begin; t += by) out.push(t);
  return out;
}

/** A duration for people. */
function length(us) {
  if (us >= 1e6) return `${(us / 1e6).toFixed(2)} s`;
  if (us >= 1e3) return `${(us / 1e3).toFixed(us < 1e4 ? 2 : 1)} ms`;
  return `${us.toFixed(us < 10 ? 1 : 0)} µs`;
}

const since = (step, t) => length(t - step.begin);

/** What kind of packet it is, for its colour. */
function kind(p) {
  const op = p.opcode || "";
  if (op.endsWith("_ACKNOWLEDGE") && p.aeth && !op.includes("ATOMIC")) return p.aeth.kind;
  if (/ATOMIC|FETCH_ADD|COMPARE_SWAP|FLUSH/.test(op)) return "atomic";
  if (op.includes("READ")) return "read";
  if (op.includes("WRITE")) return "write";
  return op.includes("SEND") ? "send" : "ack";
}

/** An opcode without what the picture shows anyway. */
function shortOpcode(p) {
  if (p.aeth && kind(p) === "ack") return "ACK";
  if (p.aeth && (kind(p) === "nak" || kind(p) === "rnr")) return p.aeth.text;
  return (p.opcode || "?")
    .replace(/^(RC|UC|UD|XRC)_/, "").replace("RDMA_", "").replace("RESPONSE", "RESP")
    .replace("_WITH_IMMEDIATE", "+IMM").replace("ACKNOWLEDGE", "ACK").replaceAll("_", " ");
}

/** What an event is called in its chip: a mark, a class, words. */
function chipOf(e) {
  const brief = (words) => words.replace(/ (from|to|of|at) .*/, "").replace(/,.*/, "").replace("bytes", "B");
  switch (e.kind) {
    case "send": return ["▸", "c-post", `post ${brief(e.words)}`];
    case "recv": return ["▸", "c-post", "post receive"];
    case "cqe": {
      const opcode = e.opcode.replace("RecvRdmaWithImm", "Recv WRITE").replace("Rdma", "");
      return e.ok ? ["✓", "c-ok", `CQE ${e.wr_id} ${opcode}`] : ["✗", "c-bad", `CQE ${e.wr_id} ${e.status}`];
    }
    default: {
      const bytes = e.changes.reduce((n, c) => n + c.len, 0);
      return ["▤", "c-mem", `memory +${e.changes[0].at}: ${bytes} B`];
    }
  }
}
