//! The table that `tools/tshark-oracle` writes.

use std::collections::BTreeMap;

/// The columns after the capture's name: tshark's names of the fields, in the table's order.
pub(crate) const COLUMNS: &[&str] = &[
    "frame.number",
    "frame.len",
    "frame.time_epoch",
    "eth.src",
    "eth.dst",
    "ip.src",
    "ip.dst",
    "ip.id",
    "ip.ttl",
    "ip.len",
    "ipv6.src",
    "ipv6.dst",
    "ipv6.hlim",
    "ipv6.plen",
    "udp.srcport",
    "udp.dstport",
    "udp.length",
    "infiniband.bth.opcode",
    "infiniband.bth.se",
    "infiniband.bth.m",
    "infiniband.bth.padcnt",
    "infiniband.bth.tver",
    "infiniband.bth.p_key",
    "infiniband.bth.destqp",
    "infiniband.bth.a",
    "infiniband.bth.reserved7",
    "infiniband.bth.psn",
    "infiniband.deth.q_key",
    "infiniband.deth.srcqp",
    "infiniband.reth.va",
    "infiniband.reth.r_key",
    "infiniband.reth.dmalen",
    "infiniband.atomiceth.swapdt",
    "infiniband.atomiceth.cmpdt",
    "infiniband.aeth.syndrome",
    "infiniband.aeth.syndrome.opcode",
    "infiniband.aeth.syndrome.credit_count",
    "infiniband.aeth.syndrome.timer",
    "infiniband.aeth.syndrome.error_code",
    "infiniband.aeth.msn",
    "infiniband.atomicacketh.origremdt",
    "infiniband.immdt",
    "infiniband.ieth",
    "data.len",
    "infiniband.invariant.crc",
    "infiniband.mad.baseversion",
    "infiniband.mad.mgmtclass",
    "infiniband.mad.classversion",
    "infiniband.mad.method",
    "infiniband.mad.status",
    "infiniband.mad.classspecific",
    "infiniband.mad.transactionid",
    "infiniband.mad.attributeid",
    "infiniband.mad.attributemodifier",
    "infiniband.mad.data",
    "infiniband.cm.req",
    "infiniband.cm.req.serviceid.prefix",
    "infiniband.cm.req.serviceid.protocol",
    "infiniband.cm.req.serviceid.dport",
    "infiniband.cm.req.localcaguid",
    "infiniband.cm.req.localqkey",
    "infiniband.cm.req.localqpn",
    "infiniband.cm.req.responderres",
    "infiniband.cm.req.localeecn",
    "infiniband.cm.req.initdepth",
    "infiniband.cm.req.remoteeecn",
    "infiniband.cm.req.remoteresptout",
    "infiniband.cm.req.transpsvctype",
    "infiniband.cm.req.e2eflowctrl",
    "infiniband.cm.req.startpsn",
    "infiniband.cm.req.localresptout",
    "infiniband.cm.req.retrcount",
    "infiniband.cm.req.pkey",
    "infiniband.cm.req.pppmtu",
    "infiniband.cm.req.rdcexist",
    "infiniband.cm.req.rnrretrcount",
    "infiniband.cm.req.maxcmretr",
    "infiniband.cm.req.srq",
    "infiniband.cm.req.ext_transport",
    "infiniband.cm.req.prim_locallid",
    "infiniband.cm.req.prim_remotelid",
    "infiniband.cm.req.prim_localgid_ipv4",
    "infiniband.cm.req.prim_remotegid_ipv4",
    "infiniband.cm.req.prim_flowlabel",
    "infiniband.cm.req.prim_pktrate",
    "infiniband.cm.req.prim_tfcclass",
    "infiniband.cm.req.prim_hoplim",
    "infiniband.cm.req.prim_sl",
    "infiniband.cm.req.prim_subnetlocal",
    "infiniband.cm.req.prim_localacktout",
    "infiniband.cm.req.ip_cm.majv",
    "infiniband.cm.req.ip_cm.minv",
    "infiniband.cm.req.ip_cm.ipv",
    "infiniband.cm.req.ip_cm.sport",
    "infiniband.cm.req.ip_cm.sip4",
    "infiniband.cm.req.ip_cm.dip4",
    "infiniband.cm.rep",
    "infiniband.cm.rep.remotecommid",
    "infiniband.cm.rep.localqkey",
    "infiniband.cm.rep.localqpn",
    "infiniband.cm.rep.localeecn",
    "infiniband.cm.rep.startpsn",
    "infiniband.cm.rep.respres",
    "infiniband.cm.rep.initdepth",
    "infiniband.cm.rep.tgtackdelay",
    "infiniband.cm.rep.failoveracc",
    "infiniband.cm.rep.e2eflowctrl",
    "infiniband.cm.rep.rnrretrcount",
    "infiniband.cm.rep.srq",
    "infiniband.cm.rep.localcaguid",
    "infiniband.cm.rtu.localcommid",
    "infiniband.cm.rtu.remotecommid",
    "infiniband.cm.dreq.localcommid",
    "infiniband.cm.dreq.remotecommid",
    "infiniband.cm.req.remoteqpneecn",
    "infiniband.cm.drsp.localcommid",
    "infiniband.cm.drsp.remotecommid",
];

/// The rows by capture and frame number.
pub(crate) struct Table(BTreeMap<(String, u64), Vec<String>>);

impl Table {
    /// Reads the table; its columns must be the ones known here, so that none goes unseen.
    pub(crate) fn parse(text: &str) -> Self {
        let mut lines = text.lines();
        let version = lines.next().unwrap();
        assert!(version.starts_with("# TShark"), "no tshark version: {version}");
        let mut lines = lines.filter(|line| !line.starts_with('#'));
        let header: Vec<_> = lines.next().unwrap().split('\t').collect();
        assert_eq!(header[0], "capture");
        assert_eq!(&header[1..], COLUMNS);
        let rows = lines.map(|line| {
            let mut cells = line.split('\t').map(str::to_owned);
            let capture = cells.next().unwrap();
            let cells: Vec<_> = cells.collect();
            assert_eq!(cells.len(), COLUMNS.len(), "{line}");
            ((capture, cells[0].parse().unwrap()), cells)
        });
        let mut all = BTreeMap::new();
        for (key, cells) in rows {
            let twice = all.insert(key, cells);
            assert!(twice.is_none(), "a frame has two rows: {twice:?}");
        }
        Self(all)
    }

    /// What tshark reads in a frame: each column and its text, which may be empty.
    pub(crate) fn row(&self, capture: &str, frame: u64) -> impl Iterator<Item = (&str, &str)> {
        let cells = self.0.get(&(capture.to_owned(), frame));
        let cells = cells.unwrap_or_else(|| panic!("{capture}: tshark saw no frame {frame}"));
        COLUMNS.iter().copied().zip(cells.iter().map(String::as_str))
    }

    /// How many frames each capture has.
    pub(crate) fn counts(&self) -> BTreeMap<String, u64> {
        let mut counts = BTreeMap::new();
        for (capture, _) in self.0.keys() {
            *counts.entry(capture.clone()).or_default() += 1;
        }
        counts
    }

    /// Columns in which no row has a text.
    pub(crate) fn empty_columns(&self) -> Vec<&'static str> {
        let empty = |i: usize| self.0.values().all(|cells| cells[i].is_empty());
        COLUMNS.iter().enumerate().filter(|(i, _)| empty(*i)).map(|(_, c)| *c).collect()
    }
}
