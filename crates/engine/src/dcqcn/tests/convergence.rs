//! Flows through a modelled bottleneck: a queue that is drained at the link's rate and marks as
//! the paper's switches do. (Its §5 finds that marking all above one threshold is not fair.)

use super::*;

const LINK: u64 = 10 * GBIT;
const PACKET: u64 = 1_024;
/// Queue lengths, bytes, between which the chance of a mark goes from none to `PMAX`; beyond
/// the upper one all are marked (the paper's K_min, K_max and P_max).
const KMIN: u64 = 5_000;
const KMAX: u64 = 200_000;
/// One in so many.
const PMAX: u64 = 100;

struct Bottleneck {
    now: u64,
    queue: u64,
    flows: Vec<ReactionPoint>,
    sent: Vec<u64>,
    np: NotificationPoint<usize>,
    random: u64,
}

impl Bottleneck {
    fn new(params: &Checked, interval: Duration, flows: usize) -> Self {
        Self {
            now: 0,
            queue: 0,
            flows: vec![ReactionPoint::new(params, Rate::from_bps(LINK)); flows],
            sent: vec![0; flows],
            np: NotificationPoint::new(interval, 8),
            random: 0x2545_f491_4f6c_dd1d,
        }
    }

    /// Whether the switch marks a packet that comes to the queue as it is.
    fn marks(&mut self) -> bool {
        // xorshift64: the same sequence in every run.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        let chance = self.queue.saturating_sub(KMIN);
        self.queue > KMAX || self.random % ((KMAX - KMIN) * PMAX) < chance
    }

    /// One packet time of the link: each of the first `active` flows that may, sends a packet.
    fn step(&mut self, active: usize) {
        self.now += PACKET * 8 * GBIT / LINK;
        let now = Time::from_nanos(self.now);
        self.queue = self.queue.saturating_sub(PACKET);
        for flow in 0..active {
            if self.flows[flow].may_send_at(now) > now {
                continue;
            }
            self.flows[flow].on_sent(now, PACKET);
            self.sent[flow] += PACKET;
            self.queue += PACKET;
            if self.marks() && self.np.on_ce(now, flow) {
                self.flows[flow].on_cnp(now);
            }
        }
    }

    fn run(&mut self, active: usize, millis: u64) {
        let end = self.now + millis * 1_000_000;
        while self.now < end {
            self.step(active);
        }
    }

    /// Mbit/s of each flow over `millis`.
    fn throughput(&mut self, active: usize, millis: u64) -> Vec<u64> {
        self.sent.fill(0);
        self.run(active, millis);
        self.sent.iter().map(|bytes| bytes * 8 / (millis * 1_000)).collect()
    }
}

/// Shares over 1 ms soon after, and over 200 ms long after, two flows have met of which one has
/// been cut to a 64th.
fn share(params: Params, interval: Duration) -> (Vec<u64>, Vec<u64>) {
    let mut net = Bottleneck::new(&params.checked().unwrap(), interval, 2);
    for cnp in 0..6 {
        net.flows[0].on_cnp(Time::from_nanos(cnp * 5_000));
    }
    let soon = net.throughput(2, 1);
    net.run(2, 500);
    (soon, net.throughput(2, 200))
}

#[test]
fn two_flows_come_to_share_a_link_with_the_papers_parameters() {
    let (soon, shares) = share(Params::paper(), NotificationPoint::<usize>::PAPER_INTERVAL);
    assert!(soon[0] * 2 < soon[1], "far apart at first: {soon:?}");
    assert!(shares.iter().sum::<u64>() > 9_500, "the link is full: {shares:?}");
    assert!(shares[0].abs_diff(shares[1]) < 1_000, "fair to a tenth: {shares:?}");
}

#[test]
fn two_flows_come_to_share_a_link_with_mlx5s_parameters() {
    let (soon, shares) = share(Params::mlx5(), NotificationPoint::<usize>::MLX5_INTERVAL);
    assert!(soon[0] * 2 < soon[1], "far apart at first: {soon:?}");
    assert!(shares.iter().sum::<u64>() > 9_500, "the link is full: {shares:?}");
    assert!(shares[0].abs_diff(shares[1]) < 1_000, "fair to a tenth: {shares:?}");
}

#[test]
fn a_flow_left_alone_takes_the_whole_link_again() {
    let params = Params::paper().checked().unwrap();
    let mut net = Bottleneck::new(&params, NotificationPoint::<usize>::PAPER_INTERVAL, 2);
    net.run(2, 50);
    assert!(!net.flows[0].at_line_rate());
    net.run(1, 100);
    assert!(net.flows[0].at_line_rate());
    assert!(net.throughput(1, 10)[0] >= 10_000);
}
