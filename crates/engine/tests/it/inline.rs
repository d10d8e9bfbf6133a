//! Inline data and the slots that requests are kept in.

use urxe_engine::{PostError, QpCaps, QpKind, SendFlags, SendOp, SendWr};

use crate::lab::lab;
use crate::script::{ADD, READ, SEND, WRITE};

fn inline(wr_id: u64, op: SendOp, data: &[u8]) -> SendWr<'_> {
    let flags = SendFlags::INLINE | SendFlags::SIGNALED;
    SendWr { inline: data, flags, ..SendWr::new(wr_id, op, &[]) }
}

#[test]
fn each_request_keeps_its_own_sges_and_inline_data() {
    // The slots of a queue are used again and again, and more are made as it fills up.
    for (capacity, rounds) in [(3, [3, 3, 3, 3]), (20, [3, 9, 1, 20])] {
        let mut n = lab();
        let caps = QpCaps { max_send_wr: capacity, ..n.init(QpKind::Uc).caps };
        let qp = n.qp(QpKind::Uc, |init, _| init.caps = caps);
        n.buffer.write(0, &(0..=255).collect::<Vec<u8>>()).unwrap();
        let mut wanted = Vec::new();
        for posts in rounds {
            n.sink.full = true;
            for _ in 0..posts {
                let at = u8::try_from(wanted.len() * 3).unwrap();
                if at % 2 == 1 {
                    let data = [at, at + 100];
                    n.send(qp, &inline(1, SEND, &data));
                    wanted.push(data.to_vec());
                } else {
                    let sges = [n.sge(at.into(), 1), n.sge(u64::from(at) + 50, 1)];
                    n.send(qp, &SendWr::new(1, SEND, &sges));
                    wanted.push(vec![at, at + 50]);
                }
            }
            n.sink.full = false;
            n.nic.pump(n.now, &mut n.sink);
        }
        let sent: Vec<_> = n.sink.sent.iter().map(|s| s.roce().payload.to_vec()).collect();
        assert_eq!(sent, wanted, "{capacity}");
    }
}

#[test]
fn inline_data_is_copied_when_it_is_posted() {
    // No lkey counts, and the program may use its buffer again at once (ibv_post_send(3)).
    let mut n = lab();
    let qp = n.rc(|attr| attr.path_mtu = urxe_wire::Mtu::B256);
    let mut data = *b"before, before";
    n.send(qp, &inline(1, SEND, &data));
    data.fill(b'x');
    n.next_deadline().unwrap();
    let sent: Vec<_> = n.sink.sent.iter().map(|s| s.roce().payload.to_vec()).collect();
    assert_eq!(sent, [b"before, before", b"before, before"]);
    assert_eq!(data, [b'x'; 14]);
}

#[test]
fn inline_data_of_more_than_one_packet_is_cut() {
    let mut n = lab();
    let caps = QpCaps { max_inline_data: 700, ..n.init(QpKind::Uc).caps };
    let qp = n.qp(QpKind::Uc, |init, attr| {
        init.caps = caps;
        attr.path_mtu = urxe_wire::Mtu::B256;
    });
    let data: Vec<u8> = (0..600_u32).map(|i| (i % 251).to_le_bytes()[0]).collect();
    n.send(qp, &inline(1, WRITE, &data));
    let sent: Vec<_> = n.sink.sent.iter().map(|s| s.roce().payload.to_vec()).collect();
    assert_eq!(sent, [&data[..256], &data[256..512], &data[512..]]);
}

#[test]
fn what_returns_data_cannot_be_inline() {
    let mut n = lab();
    let qp = n.rc(|_| {});
    for (what, op) in [(READ, "RDMA READ"), (ADD, "FETCH_ADD")] {
        let wr = inline(1, what, &[0; 8]);
        let error = n.nic.post_send(n.now, qp, &wr, &mut n.sink).unwrap_err();
        assert_eq!(error, PostError::Unsupported { op: "inline data", kind: op });
    }
}
