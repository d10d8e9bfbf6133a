//! What follows from the rest of a packet: lengths, ethertypes, checksums, CRCs.

use zerocopy::IntoBytes;

use super::{Link, Network, Packet};
use crate::{
    Error, ICRC_LEN, IcrcPrefix, Ipv4, Lrh, NextHeader, Repr, Result, Udp, VCRC_LEN, Verdict,
    Wanted, ethertype, protocol, vcrc,
};

impl Packet<'_> {
    /// What the ICRC covers before the BTH.
    #[must_use]
    pub fn icrc_prefix(&self) -> IcrcPrefix {
        match (&self.network, &self.link) {
            (Network::Ipv4 { header, options, udp }, _) => {
                IcrcPrefix::ipv4(&header.to_view(), options, &udp.to_view())
            }
            (Network::Ipv6 { header, udp }, _) => {
                IcrcPrefix::ipv6(&header.to_view(), &udp.to_view())
            }
            (Network::Grh(grh), link) => IcrcPrefix::infiniband(&lrh(link), Some(&grh.to_view())),
            (Network::Local, link) => IcrcPrefix::infiniband(&lrh(link), None),
        }
    }

    /// The ICRC that this packet should have, as its bytes stand on the wire.
    #[must_use]
    pub fn compute_icrc(&self) -> [u8; ICRC_LEN] {
        self.icrc_after(&self.icrc_prefix())
    }

    /// Checks the ICRC with all that the packet shows.
    #[must_use]
    pub fn icrc_verdict(&self) -> Verdict {
        Verdict::of(self.roce.icrc, self.compute_icrc())
    }

    /// Checks the ICRC as the user of a UDP socket must, who sees addresses, source port and length
    /// but neither identification, flags nor options of an IPv4 header. Other packets are checked
    /// in full.
    #[must_use]
    pub fn icrc_verdict_hidden_id(&self) -> Verdict {
        let Network::Ipv4 { header: Ipv4 { src, dst, .. }, udp, .. } = self.network else {
            return self.icrc_verdict();
        };
        let len = udp.len.saturating_sub(8);
        let prefix = IcrcPrefix::socket_v4(src, dst, udp.src_port, 0, len);
        let computed = self.icrc_after(&prefix);
        let covered = self.roce.len() - ICRC_LEN;
        prefix.verdict_hidden_id(self.roce.icrc, computed, covered)
    }

    /// The VCRC that this packet should have, if its link is native.
    #[must_use]
    pub fn compute_vcrc(&self) -> Option<[u8; VCRC_LEN]> {
        let Link::Infiniband { lrh, .. } = self.link else {
            return None;
        };
        let (header, len) = self.roce.header_bytes();
        let grh = match &self.network {
            Network::Grh(grh) => Some(grh.to_view()),
            _ => None,
        };
        Some(vcrc(&[
            lrh.to_view().as_bytes(),
            grh.as_ref().map_or(&[], |g| g.as_bytes()),
            &header[..len],
            self.roce.payload,
            self.roce.pad,
            &self.roce.icrc,
        ]))
    }

    /// The checksum that the UDP header should have, if there is one.
    #[must_use]
    pub fn compute_udp_checksum(&self) -> Option<u16> {
        let (header, len) = self.roce.header_bytes();
        let roce = &self.roce;
        let parts = [&header[..len], roce.payload, roce.pad, &roce.icrc];
        match &self.network {
            Network::Ipv4 { header, udp, .. } => {
                Some(udp.right_checksum_v4(header.src, header.dst, &parts))
            }
            Network::Ipv6 { header, udp } => {
                Some(udp.right_checksum_v6(header.src, header.dst, &parts))
            }
            Network::Grh(_) | Network::Local => None,
        }
    }

    /// Makes right all that follows from the rest: pad count, lengths, ethertypes, what comes next
    /// after an LRH, GRH or IP header, IPv4 header checksum, ICRC, VCRC, and the UDP checksum
    /// unless it is 0.
    ///
    /// # Errors
    /// Where the packet is longer than its headers can say, or [`Packet::emit`] would refuse it.
    pub fn seal(&mut self) -> Result<()> {
        self.check_link()?;
        self.roce.bth.pad = match self.roce.pad.len() {
            pad @ 0..=3 => u8::try_from(pad).unwrap_or(3),
            pad => return Err(Error::new("BTH", "pad count", pad as u64, Wanted::AtMost(3))),
        };
        self.roce.check()?;
        self.seal_lengths()?;
        self.seal_ethertypes();
        if let Network::Ipv4 { header, options, .. } = &mut self.network {
            header.checksum = header.right_checksum(options);
        }
        self.roce.icrc = self.compute_icrc();
        if self.udp().is_some_and(|udp| udp.checksum != 0) {
            let right = self.compute_udp_checksum().unwrap_or_default();
            if let Network::Ipv4 { udp, .. } | Network::Ipv6 { udp, .. } = &mut self.network {
                udp.checksum = right;
            }
        }
        if let (Some(right), Link::Infiniband { vcrc, .. }) = (self.compute_vcrc(), &mut self.link)
        {
            *vcrc = right;
        }
        Ok(())
    }

    fn seal_lengths(&mut self) -> Result<()> {
        let roce = self.roce.len();
        let network = self.network.len();
        match &mut self.network {
            Network::Ipv4 { header, options, udp } => {
                let words = (Ipv4::LEN + options.len()) / 4;
                header.ihl = u8::try_from(words).unwrap_or(u8::MAX);
                if options.len() > 40 || !options.len().is_multiple_of(4) {
                    let wanted = Wanted::OneOf("the multiples of 4 up to 40");
                    return Err(Error::new("IPv4", "options", options.len() as u64, wanted));
                }
                header.protocol = protocol::UDP;
                header.total_len = fit("IPv4", "total length", network + roce)?;
                udp.len = fit("UDP", "length", Udp::LEN + roce)?;
            }
            Network::Ipv6 { header, udp } => {
                header.next_header = protocol::UDP;
                header.payload_len = fit("IPv6", "payload length", Udp::LEN + roce)?;
                udp.len = header.payload_len;
            }
            Network::Grh(grh) => {
                grh.next_header = protocol::IBA_TRANSPORT;
                grh.payload_len = fit("GRH", "payload length", roce)?;
            }
            Network::Local => {}
        }
        if let Link::Infiniband { lrh, .. } = &mut self.link {
            let words = (Lrh::LEN + network + roce) / 4;
            if words > 0x7ff {
                let wanted = Wanted::AtMost(0x7ff);
                return Err(Error::new("LRH", "packet length in words", words as u64, wanted));
            }
            lrh.packet_len = fit("LRH", "packet length in words", words)?;
            lrh.next = if network == 0 { NextHeader::Local } else { NextHeader::Global };
        }
        Ok(())
    }

    /// The last ethertype names the network header; those before name VLAN tags, and stay if they
    /// do already.
    fn seal_ethertypes(&mut self) {
        let last = match self.network {
            Network::Ipv4 { .. } => ethertype::IPV4,
            Network::Ipv6 { .. } => ethertype::IPV6,
            Network::Grh(_) | Network::Local => return,
        };
        let mut wanted = last;
        for tag in self.vlans.tags_mut().iter_mut().rev() {
            if wanted == last || !ethertype::is_vlan(tag.ethertype) {
                tag.ethertype = wanted;
            }
            wanted = ethertype::VLAN;
        }
        let first = self.link.ethertype().unwrap_or_default();
        if wanted == last || !ethertype::is_vlan(first) {
            self.link.set_ethertype(wanted);
        }
    }

    fn icrc_after(&self, prefix: &IcrcPrefix) -> [u8; ICRC_LEN] {
        let (header, len) = self.roce.header_bytes();
        let mut icrc = prefix.start(&header[..len]);
        icrc.update(self.roce.payload);
        icrc.update(self.roce.pad);
        icrc.finish()
    }
}

/// The LRH of a native link; elsewhere the ones that stand for one (IBA A17.3.3).
fn lrh(link: &Link) -> crate::view::Lrh {
    match link {
        Link::Infiniband { lrh, .. } => lrh.to_view(),
        _ => zerocopy::transmute!([0xff_u8; 8]),
    }
}

fn fit(header: &'static str, field: &'static str, value: usize) -> Result<u16> {
    u16::try_from(value)
        .map_err(|_| Error::new(header, field, value as u64, Wanted::AtMost(u64::from(u16::MAX))))
}
