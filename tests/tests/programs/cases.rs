//! The table: each program with its exact command line, and what it must say.

use std::path::Path;

use crate::place::Place;
use crate::{Ended, Why, pair, perftest, pyverbs, special};

/// A command line, run in each column.
#[derive(Clone, Copy)]
pub struct Case {
    pub transport: &'static str,
    /// Flags of `urxe run`.
    pub flags: &'static [&'static str],
    /// The program and its arguments; of two programs the client's get the server's address, too.
    pub command: &'static str,
    pub how: How,
}

/// How a case is run and judged.
#[derive(Clone, Copy)]
pub enum How {
    /// One program, which must say these.
    Alone(&'static [&'static str]),
    /// A server on a TCP port and a client; both must end well and say what the judge wants.
    Pair(u16, Judge),
    /// What needs more than that.
    Special(fn(&Case, &Place, &Path) -> Ended),
}

/// Looks at a command line and at what a server and a client said.
pub type Judge = fn(command: &[String], said: &[String; 2]) -> Result<(), String>;

const PINGPONG_PORT: u16 = 18515;
const PERFTEST_PORT: u16 = 18515;
const UCX_PORT: u16 = 13337;

/// Where each program is to be had.
const PACKAGES: [(&str, &str); 9] = [
    ("ibv_", "ibverbs-utils"),
    ("ib_", "perftest"),
    ("ucx_", "ucx-utils"),
    ("mpirun", "openmpi-bin"),
    ("mpicc", "libopenmpi-dev"),
    ("qperf", "qperf"),
    ("fi_", "libfabric-bin"),
    ("stdbuf", "coreutils"),
    ("/usr/bin/python3", "python3-pyverbs"),
];

impl Case {
    pub fn words(&self) -> Vec<String> {
        self.command.split_whitespace().map(str::to_owned).collect()
    }

    /// The program that it is about.
    pub fn program(&self) -> &'static str {
        let mut words = self.command.split_whitespace();
        words
            .find(|word| !matches!(*word, "env" | "stdbuf" | "-oL") && !word.contains('='))
            .unwrap_or_default()
    }

    /// Whether it can be run here.
    pub fn installed(&self) -> Result<(), Why> {
        installed(self.program())
    }

    pub fn run(&self, place: &Place, folder: &Path) -> Ended {
        match self.how {
            How::Alone(wanted) => {
                let text = pair::alone(self, place, folder)?;
                let missing = wanted.iter().find(|word| !text.contains(**word));
                missing.map_or(Ok(()), |word| {
                    Err(Why::Wrong(format!("{}: no {word:?} in:\n{text}", self.command)))
                })
            }
            How::Pair(port, judge) => {
                let said = pair::play(self, place, folder, port)?;
                judge(&self.words(), &said)
                    .map_err(|why| Why::Wrong(format!("{why}\n{}\n{}", said[0], said[1])))
            }
            How::Special(run) => run(self, place, folder),
        }
    }
}

/// Whether a program is there; else where it is to be had.
pub fn installed(program: &str) -> Result<(), Why> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    if std::env::split_paths(&path).any(|at| at.join(program).is_file()) {
        return Ok(());
    }
    let package = PACKAGES.iter().find(|(start, _)| program.starts_with(start));
    let package = package.map_or("", |(_, package)| package);
    Err(Why::Missing(format!("{program} is not installed (package {package})")))
}

const fn alone(command: &'static str, words: &'static [&'static str]) -> Case {
    Case { transport: "–", flags: &[], command, how: How::Alone(words) }
}

const fn pair(transport: &'static str, command: &'static str, port: u16, judge: Judge) -> Case {
    Case { transport, flags: &[], command, how: How::Pair(port, judge) }
}

/// All, in the order of the page.
pub fn all() -> Vec<Case> {
    let mut all = vec![
        alone("ibv_devices", &["urxe0"]),
        alone("ibv_devinfo -v", &["PORT_ACTIVE (4)", "GID[  0]:", "RoCE v2", "Ethernet"]),
        Case {
            transport: "–",
            flags: &[],
            command: "stdbuf -oL ibv_asyncwatch -d urxe0",
            how: How::Special(special::asyncwatch),
        },
    ];
    let of = |(transport, command): &(&'static str, &'static str), port, judge: Judge| {
        pair(transport, command, port, judge)
    };
    all.extend(PINGPONGS.iter().map(|one| of(one, PINGPONG_PORT, pair::pingpong)));
    all.extend(PERFTESTS.iter().map(|one| of(one, PERFTEST_PORT, perftest::judge)));
    all.push(Case {
        transport: "RC, UC, UD, XRC",
        flags: &[],
        command: pyverbs::COMMAND,
        how: How::Special(pyverbs::run),
    });
    let served: &[&str] = &["--devfs=on"];
    all.push(Case {
        flags: served,
        ..alone("ucx_info -d", &["Device: urxe0:1", "rc_verbs", "ud_verbs"])
    });
    all.extend(UCX.iter().map(|one| Case { flags: served, ..of(one, UCX_PORT, pair::ucx) }));
    all.extend(MPI.iter().map(|&(transport, command)| Case {
        transport,
        flags: served,
        command,
        how: How::Special(special::mpi),
    }));
    all.extend(QPERF.iter().map(|&(transport, command)| Case {
        transport,
        flags: &[],
        command,
        how: How::Special(special::qperf),
    }));
    all.push(alone("fi_info -p verbs", &["provider: verbs", "domain: urxe0"]));
    all
}

/// ibverbs-utils. `-c`: what arrives is looked at.
const PINGPONGS: [(&str, &str); 29] = [
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -s 1 -n 100"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -s 4096 -n 100"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -s 65536 -n 50"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -s 1048576 -n 10"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -e -s 1 -n 100"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -e -s 1048576 -n 10"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -N -s 4096 -n 100"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -N -e -s 65536 -n 50"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -t -s 4096 -n 100"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -o -P -e -s 65536 -n 50"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -O -e -s 4096 -n 100"),
    ("RC", "ibv_rc_pingpong -d urxe0 -g 0 -c -j -e -s 4096 -n 100"),
    ("UC", "ibv_uc_pingpong -d urxe0 -g 0 -c -s 1 -n 100"),
    ("UC", "ibv_uc_pingpong -d urxe0 -g 0 -c -s 65536 -n 50"),
    ("UC", "ibv_uc_pingpong -d urxe0 -g 0 -c -e -s 4096 -n 100"),
    ("UC", "ibv_uc_pingpong -d urxe0 -g 0 -c -e -s 1048576 -n 10"),
    ("UD", "ibv_ud_pingpong -d urxe0 -g 0 -c -s 1 -n 100"),
    ("UD", "ibv_ud_pingpong -d urxe0 -g 0 -c -s 1024 -n 100"),
    ("UD", "ibv_ud_pingpong -d urxe0 -g 0 -c -e -s 1024 -n 100"),
    ("RC", "ibv_srq_pingpong -d urxe0 -g 0 -c -s 1 -n 20"),
    ("RC", "ibv_srq_pingpong -d urxe0 -g 0 -c -s 65536 -n 10"),
    ("RC", "ibv_srq_pingpong -d urxe0 -g 0 -c -e -s 4096 -n 20"),
    ("RC", "ibv_srq_pingpong -d urxe0 -g 0 -c -e -s 1048576 -n 2 -q 4"),
    ("RC", "ibv_srq_pingpong -d urxe0 -g 0 -c -o -e -s 4096 -n 20"),
    ("XRC", "ibv_xsrq_pingpong -d urxe0 -g 0 -s 1 -n 20"),
    ("XRC", "ibv_xsrq_pingpong -d urxe0 -g 0 -s 1048576 -n 5"),
    ("XRC", "ibv_xsrq_pingpong -d urxe0 -g 0 -e -s 1 -n 20"),
    ("XRC", "ibv_xsrq_pingpong -d urxe0 -g 0 -e -s 65536 -n 20"),
    ("XRC", "ibv_xsrq_pingpong -d urxe0 -g 0 -o -e -s 4096 -n 20"),
];

/// perftest. UC and UD lose what finds no room, so that not more is sent in one go than a socket
/// holds.
const PERFTESTS: [(&str, &str); 52] = [
    ("RC", "ib_send_bw -d urxe0 -F -n 100"),
    ("RC", "ib_send_bw -d urxe0 -F -n 100 -e"),
    ("RC", "ib_send_bw -d urxe0 -F -s 4096 -n 100 --use-srq"),
    ("RC", "ib_send_bw -d urxe0 -F -s 4096 -n 100 -q 8"),
    ("RC", "ib_send_bw -d urxe0 -F -s 4096 -n 100 -b"),
    ("RC", "ib_send_bw -d urxe0 -F -s 4096 -n 100 -b -e -q 8 --use-srq"),
    ("RC", "ib_send_bw -d urxe0 -F -n 5 -a -e"),
    ("RC", "ib_send_bw -d urxe0 -F -s 4096 -D 1"),
    ("RC", "ib_send_lat -d urxe0 -F -n 50"),
    ("RC", "ib_send_lat -d urxe0 -F -n 50 -e"),
    ("RC", "ib_send_lat -d urxe0 -F -n 50 -e --use-srq"),
    ("RC", "ib_write_bw -d urxe0 -F -n 100"),
    ("RC", "ib_write_bw -d urxe0 -F -s 4096 -n 100 -q 8"),
    ("RC", "ib_write_bw -d urxe0 -F -s 4096 -n 100 -b"),
    ("RC", "ib_write_bw -d urxe0 -F -n 5 -a"),
    ("RC", "ib_write_bw -d urxe0 -F -s 4096 -D 1"),
    ("RC", "ib_write_lat -d urxe0 -F -n 50"),
    ("RC", "ib_read_bw -d urxe0 -F -n 100"),
    ("RC", "ib_read_bw -d urxe0 -F -n 100 -e"),
    ("RC", "ib_read_bw -d urxe0 -F -s 4096 -n 100 -q 8"),
    ("RC", "ib_read_bw -d urxe0 -F -s 4096 -n 100 -b"),
    ("RC", "ib_read_bw -d urxe0 -F -n 5 -a -e"),
    ("RC", "ib_read_lat -d urxe0 -F -n 50"),
    ("RC", "ib_read_lat -d urxe0 -F -n 50 -e"),
    ("RC", "ib_atomic_bw -d urxe0 -F -n 100"),
    ("RC", "ib_atomic_bw -d urxe0 -F -n 100 -A CMP_AND_SWAP -q 8"),
    ("RC", "ib_atomic_bw -d urxe0 -F -n 100 -e -b"),
    ("RC", "ib_atomic_lat -d urxe0 -F -n 50"),
    ("RC", "ib_atomic_lat -d urxe0 -F -n 50 -e -A CMP_AND_SWAP"),
    ("UC", "ib_send_bw -d urxe0 -F -c UC -s 4096 -n 100"),
    ("UC", "ib_send_bw -d urxe0 -F -c UC -s 4096 -n 100 -e"),
    ("UC", "ib_send_bw -d urxe0 -F -c UC -s 1024 -n 50 -q 8"),
    ("UC", "ib_send_bw -d urxe0 -F -c UC -s 1024 -n 100 -b"),
    ("UC", "ib_send_lat -d urxe0 -F -c UC -n 50 -e"),
    ("UC", "ib_write_bw -d urxe0 -F -c UC -s 4096 -n 100"),
    ("UC", "ib_write_lat -d urxe0 -F -c UC -n 50"),
    ("UD", "ib_send_bw -d urxe0 -F -c UD -s 1024 -n 100"),
    ("UD", "ib_send_bw -d urxe0 -F -c UD -s 1024 -n 100 -e"),
    ("UD", "ib_send_bw -d urxe0 -F -c UD -s 1024 -n 100 --use-srq"),
    ("UD", "ib_send_bw -d urxe0 -F -c UD -s 1024 -n 50 -q 8"),
    ("UD", "ib_send_bw -d urxe0 -F -c UD -s 1024 -n 100 -b"),
    ("UD", "ib_send_bw -d urxe0 -F -c UD -n 20 -a -e"),
    ("UD", "ib_send_lat -d urxe0 -F -c UD -s 1024 -n 50 -e"),
    ("XRC", "ib_send_bw -d urxe0 -F -c XRC -s 4096 -n 100"),
    ("XRC", "ib_send_bw -d urxe0 -F -c XRC -s 4096 -n 100 -e -q 8"),
    ("XRC", "ib_send_bw -d urxe0 -F -c XRC -s 4096 -n 100 -b"),
    ("XRC", "ib_send_lat -d urxe0 -F -c XRC -n 50 -e"),
    ("XRC", "ib_write_bw -d urxe0 -F -c XRC -s 4096 -n 100"),
    ("XRC", "ib_write_lat -d urxe0 -F -c XRC -n 50"),
    ("XRC", "ib_read_bw -d urxe0 -F -c XRC -s 4096 -n 100 -e"),
    ("XRC", "ib_atomic_bw -d urxe0 -F -c XRC -n 100 -e"),
    ("XRC", "ib_atomic_lat -d urxe0 -F -c XRC -n 50 -e"),
];

/// UCX. `rc_v` is its name for rc_verbs with ud_verbs to connect it.
const UCX: [(&str, &str); 12] = [
    ("RC", "env UCX_TLS=rc_v UCX_NET_DEVICES=urxe0:1 ucx_perftest -t tag_bw -s 8 -n 1000"),
    ("RC", "env UCX_TLS=rc_v UCX_NET_DEVICES=urxe0:1 ucx_perftest -t tag_bw -s 1048576 -n 50"),
    ("RC", "env UCX_TLS=rc_v UCX_NET_DEVICES=urxe0:1 ucx_perftest -t tag_lat -s 4096 -n 100"),
    ("RC", "env UCX_TLS=rc_v UCX_NET_DEVICES=urxe0:1 ucx_perftest -t ucp_put_bw -s 65536 -n 100"),
    ("RC", "env UCX_TLS=rc_v UCX_NET_DEVICES=urxe0:1 ucx_perftest -t ucp_get -s 65536 -n 100"),
    ("RC", "env UCX_TLS=rc_v UCX_NET_DEVICES=urxe0:1 ucx_perftest -t ucp_fadd -s 8 -n 100"),
    ("RC", "env UCX_TLS=rc_v UCX_NET_DEVICES=urxe0:1 ucx_perftest -t stream_bw -s 65536 -n 50"),
    ("UD", "env UCX_TLS=ud_verbs UCX_NET_DEVICES=urxe0:1 ucx_perftest -t tag_bw -s 8 -n 500"),
    ("UD", "env UCX_TLS=ud_verbs UCX_NET_DEVICES=urxe0:1 ucx_perftest -t tag_bw -s 262144 -n 20"),
    ("UD", "env UCX_TLS=ud_verbs UCX_NET_DEVICES=urxe0:1 ucx_perftest -t tag_lat -s 1024 -n 50"),
    ("UD", "env UCX_TLS=ud_verbs UCX_NET_DEVICES=urxe0:1 ucx_perftest -t ucp_put_bw -s 4096 -n 50"),
    ("UD", "env UCX_TLS=ud_verbs UCX_NET_DEVICES=urxe0:1 ucx_perftest -t ucp_get -s 4096 -n 50"),
];

/// Open MPI over UCX; the last word stands for the suite's own program, mpi.c.
const MPI: [(&str, &str); 2] = [
    (
        "RC",
        "mpirun -np 4 --oversubscribe --mca pml ucx -x UCX_TLS=self,rc_v \
            -x UCX_NET_DEVICES=urxe0:1 MPI.C",
    ),
    (
        "UD",
        "mpirun -np 4 --oversubscribe --mca pml ucx -x UCX_TLS=self,ud_verbs \
            -x UCX_NET_DEVICES=urxe0:1 MPI.C",
    ),
];

/// qperf; the server's address stands before the tests. Left alone, it asks for a path MTU of 2048,
/// for which a link of 1500 bytes is too small.
const QPERF: [(&str, &str); 2] = [
    (
        "RC",
        "qperf -mt 1024 -t 1 rc_bw rc_bi_bw rc_lat rc_rdma_write_lat rc_rdma_write_poll_lat \
            rc_rdma_read_bw rc_compare_swap_mr ver_rc_fetch_add",
    ),
    ("UC", "qperf -mt 1024 -t 1 uc_bw uc_lat uc_rdma_write_bw uc_rdma_write_poll_lat"),
];
