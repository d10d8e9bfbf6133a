//! The page that tells what ran: docs/programs.md.

use std::fmt::Write;

use crate::cases::{Case, How};
use crate::place::Column;
use crate::{Outcome, Verdict, pyverbs};

const HEAD: &str = "\
# Programs that run on urxe

Debian 12's RDMA programs, unmodified, as they run on urxe's `libibverbs.so.1` through
[`urxe run`](run.md): each command line as it was run, and what came of it. A suite writes this page:

    URXE_PROGRAMS=1 cargo test -p urxe-tests --test programs -- --bless

In CI it runs if it is asked for in the same way, not with every change.

A line with ADDRESS is run twice, as `urxe run -- COMMAND` and as `urxe run -- COMMAND ADDRESS`; where
flags of `urxe run` are needed they stand in front. *Loopback*: both processes on this host, each with
an address of 127.0.0.0/8. *Namespaces*: two network namespaces with a veth link (MTU 1500) between
them, `--addr 10.77.0.1` and `--addr 10.77.0.2`. ✓: both ended well, with results for all that was
asked for; the ping-pongs (`-c`) and the MPI program check the data, too. How fast it was is not looked
at.

";

fn cell(outcomes: &[Outcome], case: usize, column: Column) -> String {
    let found = outcomes.iter().find(|one| one.case == case && one.column == column);
    match found.map(|one| &one.verdict) {
        None => String::new(),
        Some(Verdict::Passed) => "✓".to_owned(),
        Some(Verdict::Skipped(why)) => format!("skipped: {why}"),
        Some(Verdict::Failed(_)) => "✗".to_owned(),
    }
}

fn shown(case: &Case) -> String {
    let flags: String = case.flags.iter().map(|flag| format!("{flag} ")).collect();
    let dashes = if flags.is_empty() { "" } else { "-- " };
    let server = matches!(case.how, How::Pair(..)) || case.program() == "qperf";
    let server = if server { " [ADDRESS]" } else { "" };
    format!("`{flags}{dashes}{}{server}`", case.command)
}

/// The whole page.
pub fn page(cases: &[Case], outcomes: &[Outcome]) -> String {
    write_page(cases, outcomes).expect("a string takes all")
}

fn write_page(cases: &[Case], outcomes: &[Outcome]) -> Result<String, std::fmt::Error> {
    let mut page = HEAD.to_owned();
    let count =
        |verdict: fn(&Verdict) -> bool| outcomes.iter().filter(|one| verdict(&one.verdict)).count();
    let passed = count(|verdict| *verdict == Verdict::Passed);
    let failed = count(|verdict| matches!(verdict, Verdict::Failed(_)));
    writeln!(page, "{passed} passed, {failed} failed.\n")?;
    writeln!(page, "| program | transport | command | loopback | namespaces |")?;
    writeln!(page, "|---|---|---|:-:|:-:|")?;
    for (number, case) in cases.iter().enumerate() {
        let [loopback, spaces] = Column::ALL.map(|column| cell(outcomes, number, column));
        let (program, transport) = (case.program(), case.transport);
        let program = if case.command == pyverbs::COMMAND { "pyverbs' suite" } else { program };
        let command = shown(case);
        writeln!(page, "| {program} | {transport} | {command} | {loopback} | {spaces} |")?;
    }
    let (passed, skipped) = pyverbs::counts();
    writeln!(
        page,
        "\n{}",
        TAIL.replace("PASSED", &passed.to_string()).replace("SKIPPED", &skipped.to_string())
    )?;
    Ok(page.trim_end().to_owned() + "\n")
}

const TAIL: &str = "\
Of pyverbs' 273 cases (rdma-core 44) PASSED pass, SKIPPED are skipped and none fails; each is in
[pyverbs.txt](../tests/tests/programs/pyverbs.txt) with the reason. What is skipped is for mlx5 or EFA
hardware, CUDA, huge pages or raw packets, or uses librdmacm.

`rc_v` is UCX's name for rc_verbs with ud_verbs to connect it; `rc_verbs` alone has no way to connect, and
UCX says \"no auxiliary transport\". The MPI program is [mpi.c](../tests/tests/programs/mpi.c): an
allreduce and a ring of up to 300,000 elements, each result checked. Between namespaces its four
processes are in one of them and share an address.

ibv_asyncwatch ends by a signal; between namespaces it must tell of the link that goes down and comes
back.
";
