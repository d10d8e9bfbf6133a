//! The rules: what each is called, how much a departure weighs, where it can be read.

use std::fmt;

/// How much a finding weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// Worth knowing: loss, or what may be right for a reason that a capture does not show.
    Note,
    /// A rule is broken, and nothing that a capture can miss explains it.
    Violation,
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Note => "note",
            Self::Violation => "violation",
        })
    }
}

macro_rules! rules {
    ($($name:ident $id:literal $severity:ident $source:literal $says:literal;)*) => {
        /// A rule that `lint` knows.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Rule {
            $(#[doc = $says] $name,)*
        }

        impl Rule {
            /// All of them, in the order in which the page lists them.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];

            /// Its name, as findings give it.
            #[must_use]
            pub const fn id(self) -> &'static str {
                match self { $(Self::$name => $id,)* }
            }

            /// How much a departure from it weighs at most.
            #[must_use]
            pub const fn severity(self) -> Severity {
                match self { $(Self::$name => Severity::$severity,)* }
            }

            /// Where it can be read: a section of the specification, or another public source.
            #[must_use]
            pub const fn source(self) -> &'static str {
                match self { $(Self::$name => $source,)* }
            }

            /// What it says.
            #[must_use]
            pub const fn says(self) -> &'static str {
                match self { $(Self::$name => $says,)* }
            }
        }
    };
}

rules! {
    Version "bth-version" Violation "IBA 9.2"
        "The BTH's version is 0.";
    Opcode "bth-opcode" Violation "IBA 9.2.1"
        "The opcode is defined.";
    PadCount "pad-count" Violation "IBA 9.2.4"
        "Payload and pad are whole 32-bit words, and the pad count fits the payload.";
    Malformed "malformed" Violation "IBA 9.1, A17.3"
        "Lengths agree with each other, and headers hold what they can hold.";
    Icrc "icrc" Violation "IBA A17.3.3"
        "The ICRC is right. A packet whose ICRC is wrong is dropped, and so judged no further.";
    IpChecksum "ip-checksum" Violation "RFC 791 3.1"
        "The IPv4 header checksum is right (0, as offload leaves it, is a note).";
    UdpChecksum "udp-checksum" Violation "RFC 768"
        "The UDP checksum is 0 or right (one left to offload is a note).";
    PadZero "pad-zero" Note "IBA 9.2.4"
        "Pad bytes are 0.";
    Reserved "reserved" Violation "IBA 9.2, 9.3, 12.6"
        "Reserved fields are sent as 0.";
    MigReq "mig-req" Note "IBA 17.2.8"
        "MigReq is 1 where no path migration is armed; rxe sends 0.";
    PKey "pkey" Violation "IBA 10.9.1"
        "No packet has the invalid P_Key 0 or 0x8000.";
    Syndrome "syndrome" Violation "IBA 9.7.5.2.8"
        "The AETH's syndrome has a meaning on its transport.";
    Cnp "cnp-format" Violation "IBA A17.9.3"
        "A CNP has BECN 1, PSN 0, neither AckReq nor SE, and 16 zero bytes.";
    Congestion "fecn-becn" Note "IBA A17.9"
        "RoCEv2 tells of congestion by IP ECN and CNPs: FECN and BECN are 0 in other packets.";
    CnpCause "cnp-cause" Violation "IBA A17.9.3"
        "A CNP follows a packet that was marked CE. A note if packets may have been marked behind \
         the capture point, and with `--profile connectx`, whose NAKs bring CNPs.";
    GsiQKey "gsi-qkey" Violation "IBA 3.5.3"
        "Datagrams to QP1 carry Q_Key 0x80010000.";
    DatagramSize "datagram-size" Violation "IBA 9.8.3"
        "A datagram is at most 4096 bytes long.";
    MessageSize "message-size" Violation "IBA C9-94"
        "A message is at most 2^31 bytes long.";
    AtomicAlign "atomic-align" Note "IBA 9.4.5"
        "An atomic's address is a multiple of 8.";
    AtomicWriteSize "atomic-write-size" Violation "Linux drivers/infiniband/sw/rxe/rxe_resp.c"
        "An ATOMIC WRITE has 8 bytes of payload.";
    SourcePort "source-port" Note "IBA A17.3.1"
        "A connection keeps its UDP source port in each direction, or paths may reorder it.";
    OpcodeSequence "opcode-sequence" Violation "IBA 9.7.4.1"
        "First, middle and last packets of one operation follow each other; only ones stand alone.";
    PayloadSize "payload-size" Violation "IBA C9-94"
        "First and middle packets hold exactly the path MTU, last ones 1 byte to the path MTU, \
         only ones at most the path MTU.";
    DmaLength "dma-length" Violation "IBA 9.6.1.3"
        "The payloads of an RDMA WRITE sum to its RETH's length.";
    Loss "loss" Note "IBA 9.7.5"
        "PSNs are missing here: sent again later, passed late, or never seen.";
    GapAcked "gap-acknowledged" Violation "IBA 9.7.5.1"
        "Only what arrived is acknowledged: a PSN that never passed is not. A note with `--lossy`.";
    Restart "restart" Note "IBA 9.7.2"
        "PSNs jump too far for any window: taken for a new connection on the same QPNs.";
    ResendDiffers "resend-differs" Violation "IBA 9.7.5.1.1"
        "What is sent again with a PSN is what was sent with it first: opcode and length.";
    ResendEarly "resend-early" Violation "IBA 9.7.6.1.3"
        "Nothing is sent again without a NAK before the local ACK timeout: the one that the CM \
         exchange agreed on, or else 8.192 µs, the shortest there is.";
    Duplicate "duplicate" Note "IBA 9.7.5.1"
        "A packet passed twice, or was sent again.";
    StartPsn "start-psn" Violation "IBA 12.7"
        "The first request has the starting PSN of the CM exchange.";
    ResponseAhead "response-ahead" Violation "IBA 9.7.6.1"
        "Only requests that were sent are answered. A note with `--lossy`.";
    AckBackward "ack-backward" Violation "IBA 9.7.5.1"
        "ACKs never go back. A note where the MSN or other packets tell that one came late, and \
         with `--profile rxe`, which acknowledges a duplicate by the last SEND or WRITE, whatever \
         READs it has answered since.";
    NakPsn "nak-psn" Violation "IBA 9.7.5.2.8"
        "A PSN sequence NAK names the first PSN that is missing.";
    NakAgain "nak-again" Violation "IBA 9.7.5.2.8"
        "A gap gets one NAK; then the responder is silent until the missing PSN comes.";
    NakIgnored "nak-ignored" Violation "IBA 9.7.5.2.8"
        "The requester goes back to the PSN that a NAK names; it is not acknowledged before. A \
         note if nothing new was sent in between, for then it may have come late.";
    FatalAcked "fatal-acknowledged" Violation "IBA 9.7.5.2.8"
        "After a NAK that breaks the connection, nothing from that PSN on is acknowledged.";
    RnrEarly "rnr-early" Violation "IBA 9.7.5.2.8"
        "After an RNR NAK the requester waits at least the time that it names. rxe rounds down to \
         its clock's ticks: a note with `--profile rxe`.";
    Msn "msn" Violation "IBA 9.7.7.1"
        "The MSN counts completed messages; a READ counts when it is accepted (C9-148).";
    AnswerKind "answer-kind" Violation "IBA 9.7.5.1"
        "READs are answered by READ responses, atomics by ATOMIC ACKNOWLEDGE, FLUSH and ATOMIC \
         WRITE by an empty READ response only, other requests by ACKNOWLEDGE.";
    ReadPosition "read-position" Violation "IBA 9.7.5.1"
        "The opcode of a READ response is that of its place in the range: first, middle, last or \
         only.";
    ReadLength "read-length" Violation "IBA 9.7.5.1"
        "READ responses cover exactly the range that was asked for.";
    ReadResume "read-resume" Violation "IBA 9.7.5.1"
        "A READ that is sent again asks for the same range or for its rest.";
    ResponseLoss "response-loss" Note "IBA 9.7.6.1"
        "READ responses are missing here.";
    Unanswered "unanswered" Violation "IBA 9.7.5.1"
        "A request with AckReq is answered. A note unless the requester was seen to reach the \
         responder for over a second afterwards.";
    CmMad "cm-mad" Violation "IBA 13.4, 12.6"
        "A CM MAD is 256 bytes of class 7, version 2, method 3, with a known attribute.";
    CmField "cm-field" Violation "IBA 12.6"
        "Lengths and codes of a CM message are in their range.";
    CmIds "cm-ids" Violation "IBA 12.9"
        "A CM message has the communication ids and the transaction id of its exchange.";
    CmOrder "cm-order" Violation "IBA 12.9"
        "REP follows REQ, RTU follows REP, DREP follows DREQ; nothing but REJ follows a REJ. \
         A note with `--lossy`, or if the exchange began before the capture.";
    CmQpn "cm-qpn" Violation "IBA 12.6.10"
        "A DREQ names the receiver's QPN.";
    CmAddress "cm-address" Violation "IBA A11.4, A17.4.6"
        "A request names the addresses that it goes between: by its GIDs, and by the IP header of \
         a TCP or UDP port's service.";
    Unseen "unseen" Note "this tool"
        "Frames were cut too short to read or captured before segmentation; from there on, what \
         missing frames explain is a note, as with `--lossy`.";
    Pairing "pairing" Note "this tool"
        "Answers fit several connections between two addresses; they are not judged until it is \
         clear which is theirs.";
    Unpaired "unpaired" Note "this tool"
        "Answers fit no request of the capture; they are not judged.";
    Overflow "overflow" Note "this tool"
        "There are more connections, or more packets in flight, than are kept; the oldest are \
         forgotten.";
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.id())
    }
}

/// The table of all rules, in Markdown.
#[must_use]
pub fn table() -> String {
    let mut out = String::from("| rule | at most | read in | what it says |\n|---|---|---|---|\n");
    for rule in Rule::ALL {
        let (id, severity, source, says) = (rule.id(), rule.severity(), rule.source(), rule.says());
        out.push_str(&format!("| `{id}` | {severity} | {source} | {says} |\n"));
    }
    out
}
