//! The page that tells what was proved: docs/interop.md.

use std::fmt::Write;

use crate::bench::Column;
use crate::cases::CASES;
use crate::departures::{Departure, Met};

/// What came of one case in one column.
#[derive(Debug)]
pub struct Outcome {
    pub case: usize,
    pub column: Column,
    /// Where rxe departed, if the case passed.
    pub result: Result<Met, String>,
}

const HEAD: &str = "\
# Against the kernel's rxe

What urxe was seen to do with Linux's `rdma_rxe` as its peer: a real kernel, whose RoCEv2 no one here
wrote, in a guest ([how](rxe-lab.md)). The suite writes this page; to run it all, as root:

    URXE_LAB=1 cargo test -p urxe-tests --test interop -- --bless

";

const LEGEND: &str = "
✓: as it should be, data checked on both sides. A letter: rxe departs from the specification there, and
the case shows that urxe keeps to it and survives; see below. ✗: failed.

";

fn letter(departure: Departure) -> char {
    let at = Departure::ALL.iter().position(|other| *other == departure).unwrap_or_default();
    char::from(b'a' + u8::try_from(at).unwrap_or_default())
}

fn cell(outcome: Option<&Outcome>) -> String {
    match outcome.map(|outcome| &outcome.result) {
        None => String::new(),
        Some(Err(_)) => "✗".to_owned(),
        Some(Ok(met)) if met.is_empty() => "✓".to_owned(),
        Some(Ok(met)) => met.iter().map(|departure| letter(*departure)).collect(),
    }
}

/// The whole page.
pub fn page(outcomes: &[Outcome], kernel: &str, date: &str) -> String {
    let failed = outcomes.iter().filter(|outcome| outcome.result.is_err()).count();
    let passed = outcomes.len() - failed;
    let mut page = HEAD.to_owned();
    let write = &mut page;
    let told = writeln!(write, "Kernel {kernel}, {date}: {passed} passed, {failed} failed.\n")
        .and_then(|()| table(write, outcomes))
        .and_then(|()| write.write_str(LEGEND))
        .and_then(|()| {
            Departure::ALL.into_iter().try_for_each(|departure| {
                let (letter, text) = (letter(departure), departure.text());
                write!(write, "- **{letter}** {text}")?;
                match departure.capture() {
                    Some(name) => {
                        let file = format!("tests/captures/departures/{name}.pcap");
                        writeln!(write, " Two kernels: [{name}](../{file})")
                    }
                    None => writeln!(write),
                }
            })
        });
    told.expect("a string takes all");
    page
}

fn table(page: &mut String, outcomes: &[Outcome]) -> std::fmt::Result {
    write!(page, "| | case |")?;
    for column in Column::all() {
        write!(page, " {column} |")?;
    }
    writeln!(page, "\n|---|---|{}", ":-:|".repeat(Column::all().len()))?;
    for (number, case) in CASES.iter().enumerate() {
        write!(page, "| {} | {} |", case.group, case.name)?;
        for column in Column::all() {
            let mut all = outcomes.iter();
            let found = all.find(|outcome| outcome.case == number && outcome.column == column);
            write!(page, " {} |", cell(found))?;
        }
        writeln!(page)?;
    }
    Ok(())
}
