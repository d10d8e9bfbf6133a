use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};

use super::{Completed, Session};
use crate::LabError;

/// A session whose agent says `said`, whatever it is asked, and then no more; and its end of it.
fn told(said: &str) -> (Session, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (mut theirs, _) = listener.accept().unwrap();
    std::io::Write::write_all(&mut theirs, said.as_bytes()).unwrap();
    theirs.shutdown(Shutdown::Write).unwrap();
    (Session::new(ours, None).unwrap(), theirs)
}

#[test]
fn an_answer_is_words_with_values() {
    let (mut session, _agent) =
        told("ok mr=0 rkey=0xa1 addr=0x10\nok wc=7,0,1,5,2,99,17,18 wc=8,12,0,0,0,0,17,0\n");
    let reply = session.ask("mr pd=0").unwrap();
    assert_eq!(reply.number("rkey").unwrap(), 0xa1);
    assert_eq!(reply.number("mr").unwrap(), 0);
    assert!(reply.number("key").is_err(), "no word is called so");
    let got = session.ask("poll cq=0").unwrap().completions().unwrap();
    let first = Completed {
        wr_id: 7,
        status: 0,
        opcode: 1,
        byte_len: 5,
        flags: 2,
        extra: 99,
        qpn: 17,
        src_qp: 18,
    };
    assert_eq!(got[0], first);
    assert_eq!((got[1].wr_id, got[1].status), (8, 12));
}

#[test]
fn what_a_command_wrote_comes_with_its_status() {
    let (mut session, _agent) = told("ok status=3 bytes=12\nok one\nline\nok\n");
    assert_eq!(session.exec("x").unwrap(), (3, "ok one\nline\n".to_owned()));
    session.ask("next").unwrap();
}

#[test]
fn refusals_and_lost_connections_are_told_apart() {
    let (mut session, _agent) = told("err ibv_reg_mr: Cannot allocate memory (errno 12)\n");
    let refused = session.ask("mr").unwrap_err();
    assert!(matches!(&refused, LabError::Refused { answer, .. } if answer.contains("errno 12")));
    assert!(matches!(session.ask("mr").unwrap_err(), LabError::Lost { .. }));
    let (mut session, _agent) = told("ok wc=1,2\n");
    assert!(session.ask("poll").unwrap().completions().is_err());
}
