use urxe_memory::{Backing, Buffer, Config, PdId, Sge};
use urxe_wire::{Bth, Opcode, Qpn};

use super::*;
use crate::attr::QpKind;
use crate::config::Profile;

/// A receive queue of one WQE.
struct One(Option<Sge>, PdId);

impl Receives for One {
    fn take(&mut self, taken: &mut Taken) -> bool {
        let sges = self.0.take();
        let mut ring = crate::rq::Ring::new(1, 1);
        sges.is_some_and(|sge| {
            let wr = crate::RecvWr { wr_id: 1, sges: &[sge] };
            ring.post(&wr).is_ok() && ring.take(taken)
        })
    }

    fn credits(&self) -> Option<u32> {
        None
    }

    fn pd(&self) -> PdId {
        self.1
    }

    fn shared(&self) -> bool {
        false
    }
}

/// IBA C9-94: a SEND ends at 2^31 bytes, whatever its receive WQE holds.
#[test]
fn a_send_of_more_than_2_to_the_31_bytes_is_an_invalid_request() {
    for (before, fits) in [((1 << 31) - 8, true), ((1 << 31) - 7, false)] {
        let memory = Memory::new(Config::default());
        let pd = memory.alloc_pd().unwrap();
        let backing = Backing::buffer(Buffer::zeroed(64).unwrap());
        // The part of the message that comes now lies in these bytes.
        let mr = memory.reg_mr(pd, backing, 1 << 31, urxe_memory::Access::LOCAL_WRITE).unwrap();
        let mut responder = Responder::new(Psn::ZERO, 0, 1);
        let sge = Sge { addr: 32, length: u32::MAX, lkey: mr.lkey };
        let mut receives = One(Some(sge), pd);
        assert!(responder.take_for_datagram(&mut receives));
        responder.message = Message::Send;
        responder.received = before;
        let conn = Conn::new(QpKind::Rc, Qpn::new(2), pd, Profile::STRICT);
        let bth = Bth::new(Opcode::from_name("RC_SEND_LAST").unwrap(), conn.qpn, Psn::ZERO);
        let packet = Roce::new(bth, Ext::NONE, b"12345678");
        let request = Request { info: bth.opcode.info().unwrap(), packet: &packet };
        let mut env = Env { conn: &conn, memory: &memory, receives: &mut receives, no_srq: false };
        match responder.on_request(&request, &mut env) {
            Action::Done(Some(arrived)) => {
                assert!(fits);
                assert_eq!(arrived.byte_len, 1 << 31);
            }
            Action::Fail { blame, naked, cause, .. } => {
                assert!(!fits && naked);
                assert_eq!(blame, Blame::Request);
                assert_eq!(cause.rule, Rule::RequestLength((1 << 31) + 1, 1 << 31));
            }
            other => panic!("{other:?}"),
        }
    }
}
