//! A capture of the kernel's rxe that can be changed.

use std::fs;
use std::path::Path;

use urxe_cli::capture::Capture;
use urxe_wire::{Aeth, Bth, Credit, Ext, LinkType, Network, Opcode, Packet, Psn, Roce, Syndrome};

/// Where the MAD of a CM packet begins: behind Ethernet, IPv4, UDP, BTH and DETH.
pub(super) const MAD: usize = 62;
/// Where its CM message begins.
pub(super) const CM: usize = MAD + 24;

/// Frames, with their times in microseconds. Frames count from 1, as findings do.
#[derive(Clone)]
pub(super) struct Tape {
    frames: Vec<Taken>,
}

#[derive(Clone)]
struct Taken {
    micros: u64,
    bytes: Vec<u8>,
    original_len: u32,
}

impl Tape {
    /// A golden capture. rxe's MigReq is made 1, so that `lint` has nothing to tell of it.
    pub(super) fn golden(name: &str) -> Self {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tests/captures");
        let file = fs::read(folder.join(name).with_extension("pcap")).unwrap();
        let mut capture = Capture::new(name, &file[..]).unwrap();
        let mut frames = Vec::new();
        while let Some(frame) = capture.next_frame().unwrap() {
            let micros = u64::try_from(frame.time.unwrap().0 / 1000).unwrap();
            let (bytes, original_len) = (frame.bytes.to_vec(), frame.original_len);
            frames.push(Taken { micros, bytes, original_len });
        }
        let mut tape = Self { frames };
        for n in 1..=tape.len() {
            tape.packet(n, |packet| packet.roce.bth.mig_req = true);
        }
        tape
    }

    pub(super) fn len(&self) -> usize {
        self.frames.len()
    }

    fn at(&mut self, n: usize) -> &mut Taken {
        &mut self.frames[n - 1]
    }

    pub(super) fn micros(&mut self, n: usize) -> u64 {
        self.at(n).micros
    }

    pub(super) fn set_micros(&mut self, n: usize, micros: u64) {
        self.at(n).micros = micros;
    }

    /// The bytes of a frame, which stay as they are made.
    pub(super) fn bytes(&mut self, n: usize) -> &mut Vec<u8> {
        &mut self.at(n).bytes
    }

    /// Changes a packet; its lengths, checksums and ICRC are right again.
    pub(super) fn packet(&mut self, n: usize, change: impl FnOnce(&mut Packet<'_>)) {
        let old = self.bytes(n).clone();
        let mut packet = Packet::parse(LinkType::Ethernet, &old).unwrap();
        packet.trailer = &[];
        change(&mut packet);
        packet.seal().unwrap();
        let mut bytes = vec![0; packet.len()];
        packet.emit(&mut bytes).unwrap();
        let len = u32::try_from(bytes.len()).unwrap();
        (self.at(n).bytes, self.at(n).original_len) = (bytes, len);
    }

    /// Makes the lengths, checksums and the ICRC of a changed frame right.
    pub(super) fn seal(&mut self, n: usize) {
        self.packet(n, |_| {});
    }

    /// Captures no more than `len` bytes of a frame.
    pub(super) fn cut(&mut self, n: usize, len: usize) {
        self.bytes(n).truncate(len);
    }

    pub(super) fn remove(&mut self, n: usize) {
        self.frames.remove(n - 1);
    }

    /// Keeps these frames, in this order, a microsecond apart.
    pub(super) fn pick(&mut self, order: &[usize]) {
        let first = self.micros(1);
        self.frames = order.iter().map(|n| self.frames[n - 1].clone()).collect();
        for (taken, micros) in self.frames.iter_mut().zip(first..) {
            taken.micros = micros;
        }
    }

    /// Frame `n` once more, behind frame `after`, a microsecond later.
    pub(super) fn copy(&mut self, n: usize, after: usize) {
        let mut taken = self.at(n).clone();
        taken.micros = self.micros(after) + 1;
        self.frames.insert(after, taken);
    }

    /// The same, as its sender sends it again: with another IPv4 identification.
    pub(super) fn resend(&mut self, n: usize, after: usize) {
        self.copy(n, after);
        self.packet(after + 1, |packet| {
            if let Network::Ipv4 { header, .. } = &mut packet.network {
                header.id = header.id.wrapping_add(1000);
            }
        });
    }

    /// A packet on the way of frame `n`, behind frame `after`, a microsecond later.
    pub(super) fn add(&mut self, n: usize, after: usize, made: Made<'_>) {
        self.copy(n, after);
        self.packet(after + 1, |packet| {
            let opcode = Opcode::from_name(made.opcode).unwrap();
            let qpn = packet.roce.bth.dest_qp;
            let bth =
                Bth { ack_req: made.ack_req, mig_req: true, ..Bth::new(opcode, qpn, made.psn) };
            // What is copied here lives as long as the packet is used.
            let payload: &'static [u8] = Box::leak(made.payload.to_vec().into_boxed_slice());
            packet.roce = Roce::new(bth, made.ext, payload);
            if let Network::Ipv4 { header, .. } = &mut packet.network {
                header.id = header.id.wrapping_add(1000);
            }
        });
    }

    /// An answer with `syndrome` on the way of frame `n`, behind frame `after`.
    pub(super) fn answer(&mut self, n: usize, after: usize, psn: u32, msn: u32, as_: Syndrome) {
        let aeth = Aeth::new(as_, Psn::new(msn));
        let ext = Ext { aeth: Some(aeth), ..Ext::NONE };
        let psn = Psn::new(psn);
        self.add(n, after, Made { ext, ..Made::new("RC_ACKNOWLEDGE", psn) });
    }

    /// A file of it.
    pub(super) fn pcap(&self) -> Vec<u8> {
        let mut file = Vec::new();
        // Microseconds, version 2.4, Ethernet.
        for word in [0xa1b2_c3d4_u32, 0x0004_0002, 0, 0, 65_535, 1] {
            file.extend(word.to_le_bytes());
        }
        for taken in &self.frames {
            let (seconds, micros) = (taken.micros / 1_000_000, taken.micros % 1_000_000);
            let len = u32::try_from(taken.bytes.len()).unwrap();
            let [seconds, micros] = [seconds, micros].map(|n| u32::try_from(n).unwrap());
            for word in [seconds, micros, len, taken.original_len] {
                file.extend(word.to_le_bytes());
            }
            file.extend_from_slice(&taken.bytes);
        }
        file
    }
}

/// What a new packet is made of.
#[derive(Clone, Copy)]
pub(super) struct Made<'a> {
    pub(super) opcode: &'static str,
    pub(super) psn: Psn,
    pub(super) ack_req: bool,
    pub(super) ext: Ext,
    pub(super) payload: &'a [u8],
}

impl Made<'_> {
    pub(super) const fn new(opcode: &'static str, psn: Psn) -> Self {
        Self { opcode, psn, ack_req: false, ext: Ext::NONE, payload: &[] }
    }
}

/// The syndrome of a plain ACK.
pub(super) const ACK: Syndrome = Syndrome::Ack(Credit::UNLIMITED);
