//! Many connections at once on a bad link: none stuck, nothing left behind.

use std::collections::HashMap;

use urxe::cm::{Channel, ConnParam, Id, IdNumber, PortSpace, What};
use urxe::{Qp, QpCaps, QpKind, QpState};

use super::{Host, soon};
use crate::rig::{PATIENCE, alone};

/// Connects and disconnects in all; `URXE_CM_SOAK` asks for another number.
const ALL: usize = 1024;
const AT_ONCE: usize = 256;
const FAULTS: &str = "tx.loss=10%,tx.duplicate=10%,tx.reorder=10%";

/// Descriptors of this process.
fn descriptors() -> usize {
    std::fs::read_dir("/proc/self/fd").unwrap().count()
}

/// One end of a connection, and its QP.
struct End {
    id: Id,
    qp: Qp,
    active: bool,
}

#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    established: [usize; 2],
    /// Ends without a connection.
    failed: [usize; 2],
    over: [usize; 2],
}

/// Both sides in one thread, on one channel.
struct Storm {
    hosts: [Host; 2],
    channel: Channel,
    listener: Id,
    ends: HashMap<IdNumber, End>,
    counts: Counts,
    begun: usize,
    wanted: usize,
}

impl Storm {
    fn new(wanted: usize) -> Self {
        let hosts = [Host::with_faults(FAULTS), Host::with_faults(FAULTS)];
        let channel = Channel::new().unwrap();
        let listener = id(&hosts[1], &channel);
        // Both have their connection manager from here on.
        drop(id(&hosts[0], &channel));
        // All may wait at once.
        listener.listen(2 * AT_ONCE).unwrap();
        let (ends, counts) = (HashMap::new(), Counts::default());
        Self { hosts, channel, listener, ends, counts, begun: 0, wanted }
    }

    fn qp(&self, active: bool) -> Qp {
        let host = &self.hosts[usize::from(!active)];
        let caps = QpCaps { max_send_wr: 4, max_recv_wr: 4, ..QpCaps::default() };
        host.pd.qp(QpKind::Rc).cq(&host.cq).caps(caps).build().unwrap()
    }

    fn begin(&mut self) {
        let (id, qp) = (id(&self.hosts[0], &self.channel), self.qp(true));
        id.resolve_addr(None, self.listener.local_addr().unwrap()).unwrap();
        id.connect(&ConnParam::new(qp.qpn())).unwrap();
        self.begun += 1;
        self.ends.insert(id.number(), End { id, qp, active: true });
    }

    fn run(&mut self) {
        while self.begun < AT_ONCE.min(self.wanted) {
            self.begin();
        }
        while !self.ends.is_empty() || self.begun < self.wanted {
            let event = self.channel.wait_event(Some(PATIENCE)).unwrap();
            let event = event.unwrap_or_else(|| panic!("stuck: {:?}", self.counts));
            self.event(event.id, event.what);
        }
    }

    fn event(&mut self, number: IdNumber, what: What) {
        if let What::ConnectRequest(id, _) = what {
            let qp = self.qp(false);
            up(&qp, &id);
            // Unless its peer has given up meanwhile.
            if id.accept(&ConnParam::new(qp.qpn())).is_ok() {
                self.ends.insert(id.number(), End { id, qp, active: false });
            }
            return;
        }
        let Some(end) = self.ends.get(&number) else { return };
        let side = usize::from(!end.active);
        match what {
            What::ConnectResponse(_) => {
                up(&end.qp, &end.id);
                if end.id.establish(&[]).is_ok() {
                    self.counts.established[side] += 1;
                    end.qp.fail().unwrap();
                    end.id.disconnect(&[]).unwrap();
                }
            }
            What::Established { .. } => self.counts.established[side] += 1,
            What::DisconnectRequest { .. } => {
                end.qp.fail().unwrap();
                end.id.disconnect(&[]).unwrap();
            }
            What::Rejected { timewait, .. } => {
                self.counts.failed[side] += 1;
                if !timewait {
                    self.over(number, side);
                }
            }
            What::Unreachable { .. } => {
                self.counts.failed[side] += 1;
                if self.ends[&number].id.state().is_none() {
                    self.over(number, side);
                }
            }
            What::TimewaitExit => self.over(number, side),
            _ => {}
        }
    }

    /// An end is over; another attempt takes its place.
    fn over(&mut self, number: IdNumber, side: usize) {
        self.ends.remove(&number);
        self.counts.over[side] += 1;
        if side == 0 && self.begun < self.wanted {
            self.begin();
        }
    }
}

fn id(host: &Host, channel: &Channel) -> Id {
    let id = Id::new(&host.context, channel, PortSpace::Tcp, QpKind::Rc).unwrap();
    id.set_timing(soon().timing).unwrap();
    id.set_path(soon().path.unwrap()).unwrap();
    id
}

fn up(qp: &Qp, id: &Id) {
    for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
        // A connection that has ended meanwhile has no attributes, and its end is told next.
        if let Ok((attr, mask)) = id.qp_attr(state) {
            qp.modify(&attr, mask).unwrap();
        }
    }
}

#[test]
fn a_storm_of_connections_leaves_nothing_behind() {
    if !alone("connections::storm::a_storm_of_connections_leaves_nothing_behind") {
        return;
    }
    let wanted = std::env::var("URXE_CM_SOAK").map_or(ALL, |n| n.parse().unwrap());
    let before = descriptors();
    let mut storm = Storm::new(wanted);
    let objects = storm.hosts.each_ref().map(|host| host.context.counts());
    let open = descriptors();
    storm.run();
    let counts = std::mem::take(&mut storm.counts);
    assert_eq!((storm.begun, counts.over[0]), (wanted, wanted));
    // Each attempt ends alike on both sides.
    assert_eq!(counts.established[0], counts.established[1], "{counts:?}");
    assert_eq!(counts.established[0] + counts.failed[0], wanted, "{counts:?}");
    assert!(counts.established[0] > wanted / 2, "{counts:?}");
    let Storm { hosts, channel, listener, .. } = storm;
    for (host, objects) in hosts.iter().zip(objects) {
        host.is_idle();
        assert_eq!(host.context.counts(), objects);
        assert!(host.count("retried") > 0, "the link was not bad");
    }
    assert_eq!(descriptors(), open);
    drop((listener, channel, hosts));
    assert_eq!(descriptors(), before);
}
