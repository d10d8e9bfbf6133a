//! The one NIC of the process, which all open devices share: so they have the same address.

use std::net::IpAddr;
use std::sync::{Arc, Once, Weak};

use parking_lot::Mutex;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use urxe::{Address, Caps, Config, Context, Error};

use crate::call::Fail;
use crate::{fork, report};

/// The NIC, open.
#[derive(Debug)]
pub(crate) struct Nic {
    context: Context,
}

static NIC: Mutex<Weak<Nic>> = Mutex::new(Weak::new());
/// The address it had last: programs open, look at the GID, close and open again.
static LAST: Mutex<Option<IpAddr>> = Mutex::new(None);

impl Nic {
    /// Opens the NIC, unless it is open in this process, and the device on it once more. If its
    /// address is for us to choose it is `wanted`, where that can be had.
    pub(crate) fn open(wanted: Option<IpAddr>) -> Result<(Arc<Self>, Context), Fail> {
        let open = &mut *NIC.lock();
        let nic = match open.upgrade().filter(|nic| nic.context.is_ours()) {
            Some(nic) => nic,
            None => {
                show_events();
                let nic = Arc::new(Self { context: start(wanted).inspect_err(complain)? });
                *LAST.lock() = Some(nic.context.address());
                report::opened(&nic.context);
                *open = Arc::downgrade(&nic);
                nic
            }
        };
        let context = nic.context.again()?;
        Ok((nic, context))
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        report::closes(&self.context);
    }
}

/// The parent's NIC is not this process's.
///
/// # Safety
/// No other thread is there.
pub(crate) unsafe fn in_child() {
    // SAFETY: the caller's.
    unsafe { fork::renew(&NIC, Weak::new()) };
    // SAFETY: the caller's.
    unsafe { fork::renew(&LAST, None) };
}

/// Does something with the NIC if it is open in this process and nobody is opening it.
pub(crate) fn if_open(f: impl FnOnce(&Context)) {
    let nic = NIC.try_lock().and_then(|nic| nic.upgrade());
    if let Some(nic) = nic.filter(|nic| nic.context.is_ours()) {
        f(&nic.context);
    }
}

/// What the device would have as its address: for its GUID before it is open.
pub(crate) fn address() -> Option<IpAddr> {
    match config().ok()?.address {
        Address::Of(address) => Some(address),
        Address::Loopback => None,
    }
}

fn config() -> Result<Config, Error> {
    let mut config = Config::from_env()?;
    // Programs that test limits make as many objects as are said to be possible.
    config.caps = Caps {
        max_qp: 1 << 14,
        max_cq: 1 << 14,
        max_cqe: 1 << 20,
        max_srq: 1 << 12,
        max_ah: 1 << 15,
        max_pd: 1 << 14,
        max_mr: 1 << 16,
        max_mw: 1 << 16,
        ..config.caps
    };
    Ok(config)
}

fn start(wanted: Option<IpAddr>) -> Result<Context, Error> {
    let config = config()?;
    let _masked = Masked::all();
    if config.address == Address::Loopback {
        let wanted = wanted.filter(IpAddr::is_loopback);
        for address in wanted.into_iter().chain(*LAST.lock()) {
            let there = Config { address: Address::Of(address), ..config.clone() };
            if let Ok(context) = Context::open(&there) {
                return Ok(context);
            }
        }
    }
    Context::open(&config)
}

/// `URXE_WC_SL`.
pub(crate) fn wc_sl() -> Result<u8, Fail> {
    let Some(text) = std::env::var_os("URXE_WC_SL") else { return Ok(0) };
    let sl = text.to_str().and_then(|text| text.parse().ok()).filter(|&sl: &u8| sl < 16);
    sl.ok_or_else(|| {
        eprintln!("urxe: URXE_WC_SL={}: wanted 0 to 15", text.display());
        Fail::invalid("URXE_WC_SL is not 0 to 15")
    })
}

/// C learns no more than an errno, and few programs print that: so it is said here too.
fn complain(error: &Error) {
    eprintln!("urxe: the device cannot be opened: {error}");
}

/// Shows what `URXE_LOG` asks for, such as `debug`, on the standard error.
fn show_events() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let Ok(text) = std::env::var("URXE_LOG") else { return };
        match text.parse::<Targets>() {
            Ok(targets) => {
                let layer = tracing_subscriber::fmt::layer().with_writer(std::io::stderr);
                let layer = layer.with_ansi(false).with_filter(targets);
                // A Rust program may show them already.
                let _ = tracing_subscriber::registry().with(layer).try_init();
            }
            Err(error) => eprintln!("urxe: URXE_LOG={text}: {error}; wanted such as debug"),
        }
    });
}

/// Signals are blocked while this lives, and so in threads that are started meanwhile: signals are
/// the program's, and so shall the threads be that handle them.
struct Masked(libc::sigset_t);

impl Masked {
    fn all() -> Self {
        // SAFETY: a signal set is plain data; both are overwritten below.
        let (mut all, mut before) = unsafe { std::mem::zeroed::<(libc::sigset_t, _)>() };
        // SAFETY: the set is ours.
        unsafe { libc::sigfillset(&raw mut all) };
        // SAFETY: both sets are ours.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const all, &raw mut before) };
        Self(before)
    }
}

impl Drop for Masked {
    fn drop(&mut self) {
        let none = std::ptr::null_mut();
        // SAFETY: the set is the one that was in force; the old one is not asked for.
        unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, &raw const self.0, none) };
    }
}
