//! Why: the names of drops, NAKs and failed requests, and what counts them.

use core::fmt;
use core::sync::atomic::{AtomicU64, Ordering};

use urxe_memory::KeyError;
use urxe_wire::{Opcode, Psn};

/// Defines an enum of names, each with a text and the rule it stands on, and a counter for each.
macro_rules! names {
    ($(#[$doc:meta])* $name:ident {
        $($(#[$vdoc:meta])* $v:ident $key:literal $rule:literal;)*
    }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum $name { $($(#[$vdoc])* $v),* }

        impl $name {
            /// All of them, in order.
            pub const ALL: &'static [Self] = &[$(Self::$v),*];

            /// Its counter's name.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$v => $key),* }
            }

            /// The rule it stands on, by its id; empty where none is numbered.
            #[must_use]
            pub const fn rule(self) -> &'static str {
                match self { $(Self::$v => $rule),* }
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.name())
            }
        }
    };
}

names! {
    /// Why a packet that came was not acted upon.
    Drop {
        /// Its headers could not be parsed.
        Malformed "drop_malformed" "IBA 9.6.1";
        /// No row of the opcode table.
        UnknownOpcode "drop_unknown_opcode" "IBA 9.6.1.1.2";
        /// No QP of ours has this number.
        NoSuchQp "drop_no_such_qp" "IBA 9.6.1.1.1";
        /// The opcode's transport is not the QP's.
        WrongTransport "drop_wrong_transport" "IBA 9.6.1.1.2";
        /// The QP is in a state that takes no packets.
        WrongState "drop_wrong_state" "IBA 10.3.1";
        /// It came from, or for, another address than the QP is connected with.
        WrongAddress "drop_wrong_address" "IBA 9.6.1.2";
        /// Its P_Key is not the QP's.
        BadPKey "drop_bad_pkey" "IBA 9.6.1.1.3";
        /// Its Q_Key is not the QP's.
        BadQKey "drop_bad_qkey" "IBA 9.6.1.3";
        /// No QP of ours listens to this group.
        NoListener "drop_no_multicast_listener" "IBA 9.6.1.1.1";
        /// Its PSN is ahead of the expected one, which is NAKed already.
        Gap "drop_psn_gap" "IBA 9.7.5.1";
        /// It follows a request that got an RNR NAK.
        BehindRnr "drop_behind_rnr" "IBA 9.7.5.2.8";
        /// A duplicate whose saved answer is gone.
        StaleDuplicate "drop_stale_duplicate" "IBA 9.7.5.1";
        /// A duplicate READ that asks for what the first did not.
        BadDuplicate "drop_bad_duplicate" "IBA 9.7.5.1";
        /// A part of an unreliable message whose start was lost or refused.
        BrokenMessage "drop_broken_message" "IBA 9.8.2.2";
        /// An unreliable message found no receive WQE.
        NoReceive "drop_no_receive" "IBA 9.8.2.2.2";
        /// An unreliable message did not fit.
        TooLong "drop_too_long" "IBA 9.8.2.2.3";
        /// An unreliable request was not allowed here.
        NotAllowed "drop_not_allowed" "IBA 9.8.2.2";
        /// A response with a PSN that waits for none.
        GhostAck "drop_ghost_ack" "IBA 9.7.6.1";
        /// A response the QP has had already.
        DuplicateResponse "drop_duplicate_response" "IBA 9.7.6.1";
        /// A response behind a missing one that is asked for again already.
        AwaitingRetry "drop_awaiting_retry" "IBA 9.7.5.1";
        /// An ACK syndrome that has no meaning.
        ReservedSyndrome "drop_reserved_syndrome" "IBA 9.7.5.2.1";
        /// A CNP for a QP without congestion control.
        CnpIgnored "rp_cnp_ignored" "IBA A17.9.3";
        /// An XRC request for an SRQ that is not there.
        NoSuchSrq "drop_no_such_srq" "IBA A14";
    }
}

names! {
    /// What the engine counts beside drops; mlx5's names where it has one.
    Count {
        /// Packets taken in.
        RxPackets "rx_packets" "";
        /// Bytes of them, BTH to ICRC.
        RxBytes "rx_bytes" "";
        /// Packets handed to the sink.
        TxPackets "tx_packets" "";
        /// Bytes of them, BTH to pad.
        TxBytes "tx_bytes" "";
        /// Requests with a PSN ahead of the expected one.
        OutOfSequence "out_of_sequence" "";
        /// Requests seen before.
        DuplicateRequest "duplicate_request" "";
        /// NAKs (PSN sequence) received.
        PacketSeqErr "packet_seq_err" "";
        /// Responses that told of an earlier lost one.
        ImpliedNakSeqErr "implied_nak_seq_err" "";
        /// Times the local ACK timeout ran out.
        LocalAckTimeoutErr "local_ack_timeout_err" "";
        /// RNR NAKs received.
        RnrNakReceived "rnr_nak_received" "";
        /// Requests that ran out of RNR retries.
        RnrNakRetryErr "rnr_nak_retry_err" "";
        /// Requests that ran out of retries.
        RetryExceeded "req_transport_retries_exceeded" "";
        /// RNR NAKs sent.
        OutOfBuffer "out_of_buffer" "";
        /// NAKs (PSN sequence) sent.
        NakSeqSent "nak_seq_sent" "";
        /// NAKs (invalid request, remote access, remote operational) sent.
        NakErrorSent "nak_error_sent" "";
        /// WRITE requests executed.
        RxWriteRequests "rx_write_requests" "";
        /// READ requests executed.
        RxReadRequests "rx_read_requests" "";
        /// Atomic requests executed.
        RxAtomicRequests "rx_atomic_requests" "";
        /// Packets retransmitted.
        Retransmitted "tx_retransmitted" "";
        /// Completions with an error, of send queues.
        ReqCqeError "req_cqe_error" "";
        /// Flushed completions, of send queues.
        ReqCqeFlushError "req_cqe_flush_error" "";
        /// Completions with an error, of receive queues.
        RespCqeError "resp_cqe_error" "";
        /// Flushed completions, of receive queues.
        RespCqeFlushError "resp_cqe_flush_error" "";
        /// Packets that came marked CE.
        EcnMarked "np_ecn_marked_roce_packets" "";
        /// CNPs sent.
        CnpSent "np_cnp_sent" "";
        /// CNPs that slowed a QP.
        CnpHandled "rp_cnp_handled" "";
        /// Packets whose ICRC was wrong; the port counts these here.
        BadIcrc "rx_icrc_encapsulated" "";
        /// Completions lost to a full CQ, each told of by an event.
        CqOverflow "cq_overflow" "";
    }
}

/// Counters of a NIC, readable at any time.
#[derive(Debug)]
pub struct Counters {
    drops: [AtomicU64; Drop::ALL.len()],
    counts: [AtomicU64; Count::ALL.len()],
}

impl Default for Counters {
    fn default() -> Self {
        Self {
            drops: [const { AtomicU64::new(0) }; Drop::ALL.len()],
            counts: [const { AtomicU64::new(0) }; Count::ALL.len()],
        }
    }
}

impl Counters {
    /// How many packets were dropped for `why`.
    #[must_use]
    pub fn drops(&self, why: Drop) -> u64 {
        self.drops[why as usize].load(Ordering::Relaxed)
    }

    /// The value of `what`.
    #[must_use]
    pub fn get(&self, what: Count) -> u64 {
        self.counts[what as usize].load(Ordering::Relaxed)
    }

    /// Adds `n` to `what`.
    pub fn add(&self, what: Count, n: u64) {
        self.counts[what as usize].fetch_add(n, Ordering::Relaxed);
    }

    pub(crate) fn dropped(&self, why: Drop) {
        self.drops[why as usize].fetch_add(1, Ordering::Relaxed);
    }

    /// All that are not zero, by name.
    pub fn non_zero(&self) -> impl Iterator<Item = (&'static str, u64)> + '_ {
        let counts = Count::ALL.iter().map(|&c| (c.name(), self.get(c)));
        let drops = Drop::ALL.iter().map(|&d| (d.name(), self.drops(d)));
        counts.chain(drops).filter(|&(_, n)| n != 0)
    }
}

/// What went wrong, in a failed completion or behind a NAK.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Rule {
    /// The peer did not answer, `retry_cnt` times.
    RetryExhausted,
    /// As [`Self::RetryExhausted`], and the host refused packets as too long for the way to the
    /// peer.
    PathTooNarrow,
    /// The peer had no receive WQE, `rnr_retry` times.
    RnrExhausted,
    /// The peer sent a NAK: invalid request.
    NakInvalidRequest,
    /// The peer sent a NAK: remote access error.
    NakRemoteAccess,
    /// The peer sent a NAK: remote operational error.
    NakRemoteOperational,
    /// A key of our own memory was refused.
    LocalKey(KeyError),
    /// A remote key of a peer's request was refused.
    RemoteKey(KeyError),
    /// A response of another kind than was asked for.
    ResponseOpcode(Opcode),
    /// A response of another length than was asked for: got, wanted (bytes).
    ResponseLength(u32, u32),
    /// An opcode that cannot follow the one before it.
    OpcodeSequence(Opcode),
    /// An opcode no table has.
    UnknownOpcode(Opcode),
    /// A request the QP's access flags, kind or resources do not allow.
    NotAllowed(Opcode),
    /// More READs and atomics at once than `max_dest_rd_atomic`.
    TooManyReads,
    /// A request's payload was of another length than its place asks: got, wanted (bytes).
    RequestLength(u32, u32),
    /// The message did not fit the receive WQE: message so far, room (bytes).
    MessageTooLong(u32, u32),
    /// An atomic's target is not aligned.
    Misaligned(KeyError),
    /// The QP came in error while this waited.
    Flushed,
    /// Something the window bind needs is missing or not allowed.
    Bind(KeyError),
    /// The address handle is of another PD than the QP.
    AhOfOtherPd,
}

impl Rule {
    /// The rule's id in the specification; empty where none is numbered.
    #[must_use]
    pub const fn id(&self) -> &'static str {
        match self {
            Self::RetryExhausted | Self::PathTooNarrow => "IBA 9.7.6.1.3",
            Self::RnrExhausted
            | Self::NakInvalidRequest
            | Self::NakRemoteAccess
            | Self::NakRemoteOperational => "IBA 9.7.5.2.8",
            Self::LocalKey(_) => "IBA 10.6.3",
            Self::ResponseOpcode(_) | Self::ResponseLength(..) => "IBA 9.9.2.1",
            Self::RemoteKey(_)
            | Self::OpcodeSequence(_)
            | Self::NotAllowed(_)
            | Self::TooManyReads => "IBA 9.7.4.1",
            Self::UnknownOpcode(_) => "IBA 9.6.1.1.2",
            Self::RequestLength(..) => "IBA C9-94",
            Self::MessageTooLong(..) => "IBA C9-92",
            Self::Flushed => "IBA 10.3.1",
            Self::Bind(_) => "IBA 10.6.7",
            Self::Misaligned(_) => "IBA 9.4.5",
            Self::AhOfOtherPd => "",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::RetryExhausted => f.write_str("no answer, after all retries"),
            Self::PathTooNarrow => f.write_str(
                "no answer, after all retries; packets were too long for the path to the peer: \
                 give a smaller path MTU",
            ),
            Self::RnrExhausted => f.write_str("peer had no receive WQE, after all RNR retries"),
            Self::NakInvalidRequest => f.write_str("peer sent NAK invalid request"),
            Self::NakRemoteAccess => f.write_str("peer sent NAK remote access error"),
            Self::NakRemoteOperational => f.write_str("peer sent NAK remote operational error"),
            Self::LocalKey(e) => write!(f, "local memory: {e}"),
            Self::RemoteKey(e) => write!(f, "remote memory: {e}"),
            Self::ResponseOpcode(o) => write!(f, "response {o} answers no request"),
            Self::ResponseLength(got, want) => {
                write!(f, "response of {got} bytes, wanted {want}")
            }
            Self::OpcodeSequence(o) => write!(f, "{o} cannot follow the packet before it"),
            Self::UnknownOpcode(o) => write!(f, "opcode {o} is not defined"),
            Self::NotAllowed(o) => write!(f, "{o} is not allowed on this QP"),
            Self::TooManyReads => f.write_str("more READs and atomics than max_dest_rd_atomic"),
            Self::RequestLength(got, want) => write!(f, "payload of {got} bytes, wanted {want}"),
            Self::MessageTooLong(got, room) => {
                write!(f, "message of {got} bytes or more, the receive WQE holds {room}")
            }
            Self::Misaligned(e) => write!(f, "atomic: {e}"),
            Self::Flushed => f.write_str("the QP is in error"),
            Self::Bind(e) => write!(f, "window bind: {e}"),
            Self::AhOfOtherPd => f.write_str("the address handle is of another PD than the QP"),
        }
    }
}

/// Why a packet is sent, where that is no new request's nor a plain answer's doing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// It was sent before: the local ACK timeout ran out.
    Timeout,
    /// It was sent before: the peer's NAK says that it, or one before it, is missing.
    Nak,
    /// It was sent before: a response behind the one to it has come.
    ImpliedNak,
    /// It was sent before: the peer had no receive WQE then.
    RnrOver,
    /// A NAK: a PSN is missing. The one that was expected, the one that came.
    Gap(Psn, Psn),
    /// A NAK: there is no receive WQE.
    NotReady,
    /// A NAK: the request was refused.
    Refused(Cause),
    /// A CNP: the network marked a packet of the peer's.
    Congestion,
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Timeout => f.write_str("sent again: no answer came in time"),
            Self::Nak => f.write_str("sent again: the peer's NAK asks for it"),
            Self::ImpliedNak => f.write_str("sent again: the response to it is missing"),
            Self::RnrOver => f.write_str("sent again: the RNR wait is over"),
            Self::Gap(expected, got) => write!(f, "NAK: expected PSN {expected}, got {got}"),
            Self::NotReady => f.write_str("RNR NAK: no receive WQE"),
            Self::Refused(cause) => write!(f, "NAK: {cause}"),
            Self::Congestion => f.write_str("CNP: a packet came marked CE"),
        }
    }
}

/// Why a completion failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cause {
    /// What went wrong.
    pub rule: Rule,
    /// The packet it was about, where there is one.
    pub psn: Option<Psn>,
}

impl Cause {
    /// A cause without a packet.
    #[must_use]
    pub const fn new(rule: Rule) -> Self {
        Self { rule, psn: None }
    }

    /// A cause about the packet `psn`.
    #[must_use]
    pub const fn at(rule: Rule, psn: Psn) -> Self {
        Self { rule, psn: Some(psn) }
    }
}

impl fmt::Display for Cause {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.rule.fmt(f)?;
        if let Some(psn) = self.psn {
            write!(f, ", PSN {psn}")?;
        }
        match self.rule.id() {
            "" => Ok(()),
            id => write!(f, " ({id})"),
        }
    }
}
