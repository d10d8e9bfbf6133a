//! The echo server of every book on sockets, over RDMA.
//!
//!     cargo run -p urxe --example echo -- server                  prints where it listens
//!     cargo run -p urxe --example echo -- client 127.0.0.1:7174 hello world
//!
//! `Listener::bind`, `incoming`, `accept` and `Connection::connect` are what `TcpListener` and
//! `TcpStream` have; what is added is the memory that messages go to and come from.

#![expect(clippy::print_stdout, reason = "an example talks to whoever runs it")]

use std::error::Error;
use std::net::SocketAddr;
use std::process::ExitCode;

use urxe::cm::{Connection, Incoming, Listener, Options};
use urxe::{Access, Config, Context, Cq, Mr, Pd, Qp, QpKind, SendOp, WcStatus};

const PORT: u16 = 7174;
const LONGEST: usize = 4096;
/// Work requests by number: where a message comes to, and where one leaves from.
const GET: u64 = 0;
const PUT: u64 = 1;

/// What a connection needs: a completion queue, and memory for a message each way.
struct Half {
    pd: Pd,
    cq: Cq,
    mr: Mr,
}

impl Half {
    fn new(context: &Context) -> Result<Self, urxe::Error> {
        let (pd, cq) = (context.alloc_pd()?, context.create_cq(16)?);
        let mr = pd.register(2 * LONGEST, Access::LOCAL_WRITE)?;
        Ok(Self { pd, cq, mr })
    }

    /// A QP that waits for its first message before its peer can send one.
    fn qp(&self) -> Result<Qp, urxe::Error> {
        let qp = self.pd.qp(QpKind::Rc).cq(&self.cq).build()?;
        qp.init()?;
        self.wait_for_message(&qp)?;
        Ok(qp)
    }

    fn wait_for_message(&self, qp: &Qp) -> Result<(), urxe::Error> {
        qp.post_recv(GET, &[self.mr.sge(0..LONGEST)])
    }

    fn send(&self, qp: &Qp, message: &[u8]) -> Result<(), urxe::Error> {
        self.mr.write(LONGEST, message)?;
        let data = self.mr.sge(LONGEST..LONGEST + message.len());
        qp.post_send(PUT, SendOp::Send { imm: None }, &[data])
    }

    /// The next message; `None` if there will be none.
    fn message(&self, connection: &Connection) -> Result<Option<Vec<u8>>, urxe::Error> {
        loop {
            match self.cq.poll_one()? {
                Some(done) if done.status != WcStatus::Success => return Ok(None),
                Some(done) if done.wr_id == GET => {
                    let message = self.mr.to_vec(0..done.byte_len as usize)?;
                    self.wait_for_message(connection.qp())?;
                    return Ok(Some(message));
                }
                Some(_) => {}
                None if connection.closed()?.is_some() => return Ok(None),
                None => std::thread::yield_now(),
            }
        }
    }
}

fn serve(context: &Context, incoming: Incoming) -> Result<(), urxe::Error> {
    let half = Half::new(context)?;
    let connection = incoming.accept(half.qp()?, &Options::default())?;
    while let Some(message) = half.message(&connection)? {
        half.send(connection.qp(), &message)?;
    }
    Ok(())
}

fn server(context: &Context) -> Result<(), urxe::Error> {
    let listener = Listener::bind(context, (context.address(), PORT).into())?;
    println!("listening at {}", listener.local_addr());
    loop {
        let incoming = listener.incoming()?;
        let (context, peer) = (context.clone(), incoming.peer_addr());
        std::thread::spawn(move || match serve(&context, incoming) {
            Ok(()) => println!("served {peer:?}"),
            Err(error) => eprintln!("{peer:?}: {error}"),
        });
    }
}

fn client(context: &Context, to: SocketAddr, words: &[String]) -> Result<(), Box<dyn Error>> {
    let half = Half::new(context)?;
    let connection = Connection::connect(context, to, half.qp()?, &Options::default())?;
    for word in words {
        half.send(connection.qp(), word.as_bytes())?;
        let back = half.message(&connection)?.ok_or("the server has closed the connection")?;
        println!("{}", String::from_utf8_lossy(&back));
    }
    connection.disconnect()?;
    Ok(())
}

fn run(arguments: &[String]) -> Result<(), Box<dyn Error>> {
    let context = Context::open(&Config::from_env()?)?;
    match arguments {
        [role] if role == "server" => Ok(server(&context)?),
        [role, to, words @ ..] if role == "client" => client(&context, to.parse()?, words),
        _ => Err("wanted: server, or client ADDRESS:PORT WORD...".into()),
    }
}

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("echo: {error}");
            ExitCode::FAILURE
        }
    }
}
