//! A sink that gathers packets, and what other sinks may send meanwhile.

use urxe_engine::{Held, Path, Payload, QpId, QpKind, Transmit};
use urxe_wire::Mtu;

use crate::lab::{Node, lab};
use crate::script::SEND;

/// Gathers up to `room` packets: source port and PSN.
struct Gathers {
    room: usize,
    got: Vec<(u16, u32)>,
    held: Held,
}

impl Gathers {
    fn new(room: usize) -> Self {
        Self { room, got: Vec::new(), held: Held::with_capacity(room) }
    }

    /// What was gathered has left.
    fn flush(&mut self, n: &Node) -> Vec<(u16, u32)> {
        n.nic.release(&mut self.held);
        std::mem::take(&mut self.got)
    }

    fn pump(&mut self, n: &Node) -> usize {
        let before = self.got.len();
        n.nic.pump(n.now, self);
        self.got.len() - before
    }
}

impl Transmit for Gathers {
    fn room(&self) -> usize {
        self.room - self.got.len()
    }

    fn held(&mut self) -> Option<&mut Held> {
        Some(&mut self.held)
    }

    fn packet(&mut self, path: &Path, header: &[u8], _: Payload<'_>, _: usize) {
        self.got.push((path.src_port, crate::lab::bth_of(header).psn.value()));
    }
}

/// UC QPs of MTU 256 with messages of so many packets waiting.
fn loaded(packets: &[u32]) -> (Node, Vec<QpId>) {
    let mut n = lab();
    n.sink.full = true;
    let qps = packets.iter().map(|count| {
        let qp = n.qp(QpKind::Uc, |_, attr| attr.path_mtu = Mtu::B256);
        n.post(qp, 1, SEND, 256 * count);
        qp
    });
    let qps = qps.collect();
    (n, qps)
}

/// Packets of one QP leave in order though several sinks take them.
#[test]
fn no_other_sink_sends_for_a_qp_whose_packets_wait() {
    let (n, _) = loaded(&[200, 1]);
    let (mut one, mut two) = (Gathers::new(20), Gathers::new(64));
    // The first QP's turn is cut short; the second's is for the other sink.
    assert_eq!((one.pump(&n), two.pump(&n)), (20, 1));
    assert!(!n.nic.has_work());
    let first = one.flush(&n);
    assert_eq!(first.iter().map(|p| p.1).collect::<Vec<_>>(), (100..120).collect::<Vec<_>>());
    assert!(n.nic.has_work(), "what it has left is anyone's again");
    assert_eq!(two.pump(&n), 63);
    assert_eq!(one.pump(&n), 0, "it is held by the other sink now");
    let second = two.flush(&n);
    assert_eq!((second[1].1, second[63].1), (120, 182));
    assert_eq!(one.pump(&n), 20);
}

/// A QP alone fills a batch, turn after turn; with others its turns are theirs, too.
#[test]
fn turns_go_on_while_there_is_room() {
    let (n, _) = loaded(&[200]);
    let mut sink = Gathers::new(100);
    assert_eq!(sink.pump(&n), 100);
    sink.flush(&n);
    let (n, _) = loaded(&[200, 40, 1]);
    let mut sink = Gathers::new(150);
    assert_eq!(sink.pump(&n), 150);
    let got = sink.flush(&n);
    let runs: Vec<usize> = got.chunk_by(|a, b| a.0 == b.0).map(<[_]>::len).collect();
    assert_eq!(runs, [32, 32, 1, 32, 8, 45], "32 each in turn, then the rest is the first's");
    // A turn that was cut short goes on before others'.
    assert_eq!(sink.pump(&n), 200 - 109);
}

/// What comes up for a QP that is held waits for its packets.
#[test]
fn what_is_posted_meanwhile_goes_when_it_is_let_go() {
    let (mut n, qps) = loaded(&[1]);
    let mut sink = Gathers::new(64);
    assert_eq!(sink.pump(&n), 1);
    n.post(qps[0], 2, SEND, 4);
    n.post(qps[0], 3, SEND, 4);
    assert!(!n.nic.has_work() && sink.pump(&n) == 0);
    sink.flush(&n);
    assert!(n.nic.has_work());
    assert_eq!(sink.pump(&n), 2);
    assert_eq!(sink.flush(&n).iter().map(|p| p.1).collect::<Vec<_>>(), [101, 102]);
    assert!(!n.nic.has_work());
}

/// One that is destroyed while it is held leaves nothing behind, nor does what had nothing to send.
#[test]
fn a_qp_may_go_while_it_is_held() {
    let (mut n, qps) = loaded(&[200, 1]);
    let mut sink = Gathers::new(20);
    sink.pump(&n);
    n.nic.destroy_qp(qps[0]).unwrap();
    sink.flush(&n);
    assert_eq!(sink.pump(&n), 1);
    sink.flush(&n);
    assert!(!n.nic.has_work());
    // Nothing gathered, nothing held: another sink may have it at once.
    let idle = n.qp(QpKind::Uc, |_, _| {});
    assert_eq!(sink.pump(&n), 0);
    n.post(idle, 1, SEND, 4);
    let mut other = Gathers::new(4);
    assert_eq!(other.pump(&n), 1);
}
