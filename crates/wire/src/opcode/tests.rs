use core::fmt::Write;

use super::*;

/// One line per code, undefined ones in ranges.
fn table() -> String {
    let mut out = String::from(
        "code name                                operation              position direction\
        \x20 len payload recv headers\n",
    );
    let mut code = 0_u16;
    while code < 256 {
        let byte = |c: u16| Opcode(u8::try_from(c).unwrap());
        if let Some(i) = byte(code).info() {
            let headers: Vec<_> = i.headers.iter_names().map(|(name, _)| name).collect();
            let yes = |b: bool| if b { "yes" } else { "-" };
            let line = format!(
                "0x{code:02x} {:<35} {:<22} {:<8} {:<9} {:>4} {:<7} {:<4} {}",
                i.name,
                format!("{:?}", i.operation),
                format!("{:?}", i.position),
                format!("{:?}", i.direction),
                i.header_len(),
                yes(i.payload),
                yes(i.takes_recv_wqe),
                headers.join(" "),
            );
            writeln!(out, "{}", line.trim_end()).unwrap();
            code += 1;
            continue;
        }
        let first = code;
        while code < 256 && byte(code).info().is_none() {
            code += 1;
        }
        let range = match code - 1 {
            last if last == first => format!("0x{first:02x}"),
            last => format!("0x{first:02x} to 0x{last:02x}"),
        };
        writeln!(out, "{range}: not defined").unwrap();
    }
    out
}

#[test]
fn the_256_codes() {
    insta::assert_snapshot!("the_256_codes", table());
}

#[test]
fn a_row_is_found_by_what_it_is_and_by_its_name() {
    for row in TABLE.iter().flatten() {
        let extra = row.headers & (ExtHeaders::IMM | ExtHeaders::IETH);
        let found = Opcode::find(row.transport, row.operation, row.position, extra);
        if row.transport != Transport::Cnp {
            assert_eq!(found, Some(row.opcode), "{}", row.name);
        }
        assert_eq!(Opcode::from_name(row.name), Some(row.opcode));
        assert_eq!(Opcode::from_name(&row.name.to_lowercase()), Some(row.opcode));
        assert_eq!(row.opcode.to_string(), row.name);
    }
    assert_eq!(Opcode::from_name("RC_NOTHING"), None);
    assert_eq!(Opcode(0xff).to_string(), "0xff");
    let uc_read = Opcode::find(Transport::Uc, Operation::ReadRequest, Only, ExtHeaders::empty());
    assert_eq!(uc_read, None, "UC has no READ");
}
