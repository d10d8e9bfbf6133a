//! What the other process does.

use std::collections::HashMap;
use std::io::{self, BufRead, Write};
use std::process;
use std::sync::mpsc::{Receiver, TryRecvError, channel};
use std::thread;

use super::{Order, Reply};
use crate::bench::side::{Side, good};
use crate::bench::{idle, pingpong, raw};
use crate::command::Failure;

/// What comes from the first process.
pub(in crate::bench) struct Orders(Receiver<Order>);

impl Orders {
    /// Whether it says to stop.
    pub(in crate::bench) fn stopped(&self) -> bool {
        !matches!(self.0.try_recv(), Err(TryRecvError::Empty))
    }

    /// Waits until it says to stop.
    fn wait(&self) {
        let _ = self.0.recv();
    }
}

/// Does what the standard input says, line by line, until it ends.
pub(in crate::bench) fn serve(out: &mut dyn Write) -> Result<(), Failure> {
    let (sender, orders) = channel();
    thread::spawn(move || {
        for line in io::stdin().lock().lines().map_while(Result::ok) {
            match serde_json::from_str(&line) {
                Ok(order) => {
                    if sender.send(order).is_err() {
                        return;
                    }
                }
                Err(_) => break,
            }
        }
        // The first process is gone. Whatever this one waits for will not come.
        process::exit(0);
    });
    let mut desk = Desk { orders: Orders(orders), sides: HashMap::new(), out };
    while let Ok(order) = desk.orders.0.recv() {
        let reply = desk.obey(order);
        if let Some(reply) = reply.unwrap_or_else(|why| Some(Reply::Failed(why.to_string()))) {
            desk.say(&reply)?;
        }
    }
    Ok(())
}

struct Desk<'a> {
    orders: Orders,
    sides: HashMap<u32, Side>,
    out: &'a mut dyn Write,
}

impl Desk<'_> {
    fn say(&mut self, reply: &Reply) -> Result<(), Failure> {
        serde_json::to_writer(&mut self.out, reply)?;
        writeln!(self.out)?;
        Ok(self.out.flush()?)
    }

    fn side(&self, id: u32) -> Result<&Side, Failure> {
        self.sides.get(&id).ok_or_else(|| format!("no device {id} is open").into())
    }

    /// Does it; gives what is to be said when it is done.
    fn obey(&mut self, order: Order) -> Result<Option<Reply>, Failure> {
        let mut reply = Reply::Done;
        match order {
            Order::Open { id, spec } => {
                let side = Side::open(&spec)?;
                reply = Reply::Opened { ends: side.ends(), remote: side.remote() };
                self.sides.insert(id, side);
            }
            Order::Connect { id, ends } => self.side(id)?.connect(&ends)?,
            Order::Fill { id, seed, len } => self.side(id)?.fill(seed, len)?,
            Order::Check { id, seed, len } => self.side(id)?.check(seed, len)?,
            Order::Receive { id } => {
                self.side(id)?;
                self.say(&Reply::Done)?;
                let ended = receive(self.side(id)?, &self.orders);
                return self.stopped(ended.map(|()| Reply::Done));
            }
            Order::Answer { id, writes } => {
                // What the first process sends must not come before all is ready.
                pingpong::clear(self.side(id)?)?;
                self.say(&Reply::Done)?;
                let stopped = || self.orders.stopped();
                let ended = pingpong::answer(self.side(id)?, writes, stopped);
                return self.stopped(ended.map(|()| Reply::Done));
            }
            Order::TakeDatagrams { bytes, offload } => {
                let sink = raw::Sink::open(bytes, offload)?;
                self.say(&Reply::Listening(sink.address()?))?;
                let took = sink.take(&self.orders);
                return self.stopped(took.map(Reply::Took));
            }
            Order::TakeStream => {
                let listener = raw::listen()?;
                self.say(&Reply::Listening(listener.local_addr()?))?;
                reply = Reply::Took(raw::take_stream(&listener)?);
            }
            Order::Echo { bytes, spins } => {
                let socket = raw::socket()?;
                self.say(&Reply::Listening(socket.local_addr()?))?;
                raw::echo(&socket, bytes, spins)?;
            }
            Order::Stop => return Err("there is nothing to stop".into()),
            Order::CpuTime => reply = Reply::Number(idle::cpu_time()?),
            Order::Memory { qps, settings } => {
                reply = Reply::Number(idle::memory(qps, settings)?);
            }
            Order::Close { id } => drop(self.sides.remove(&id)),
        }
        Ok(Some(reply))
    }

    /// After work that lasts until the word to stop: a failure is told at once, and that word is
    /// then waited for.
    fn stopped(&mut self, ended: Result<Reply, Failure>) -> Result<Option<Reply>, Failure> {
        match ended {
            Ok(reply) => Ok(Some(reply)),
            Err(why) => {
                self.say(&Reply::Failed(why.to_string()))?;
                self.orders.wait();
                Ok(None)
            }
        }
    }
}

/// Takes messages and posts receives anew.
fn receive(side: &Side, orders: &Orders) -> Result<(), Failure> {
    let mut done = Vec::new();
    while !orders.stopped() {
        side.receives.poll(&mut done, 64)?;
        for one in done.drain(..) {
            good(&one)?;
            side.post_receive(usize::try_from(one.wr_id)?)?;
        }
    }
    Ok(())
}
