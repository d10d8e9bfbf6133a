//! A guest: QEMU, its console, and the way to its agent.

use std::fs::File;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::cache::Kernel;
use crate::session::Session;
use crate::watch::{Watch, connect};
use crate::{LabError, Options, link};

/// Longer than a guest takes to come up on any machine: all of its instructions are emulated.
const BOOT: Duration = Duration::from_secs(400);
/// All that QEMU emulates, but CMPXCHG16B: before 8.0 it computes the flags from an old `cc_op`
/// there (target/i386/tcg/mem_helper.c). Stray bits of them, VM for one, kill the guest if an
/// interrupt comes right then: a double fault in the kernel's allocator, which uses it.
const CPU: &str = "max,cx16=off";
/// For one connection of a guest that is coming up.
const CONNECT: Duration = Duration::from_secs(5);
/// Between two looks at whether it is up.
const PAUSE: Duration = Duration::from_millis(100);

/// A running guest; dropping it ends it.
#[derive(Debug)]
pub struct Guest {
    number: u8,
    watch: Watch,
}

impl Guest {
    pub(crate) fn start(
        number: u8,
        kernel: &Kernel,
        image: &Path,
        folder: &Path,
        options: &Options,
    ) -> Result<Self, LabError> {
        let console = folder.join(format!("console-{number}"));
        // What a guest before it said is not its own; QEMU takes a moment to empty the file.
        File::create(&console).map_err(LabError::file(&console))?;
        let log = folder.join(format!("qemu-{number}"));
        let said = File::create(&log).map_err(LabError::file(&log))?;
        // It ends with us, also if we are killed.
        let mut qemu = Command::new("setpriv");
        qemu.args(["--pdeathsig", "KILL", "qemu-system-x86_64"]);
        qemu.args(["-accel", "tcg,thread=multi", "-cpu", CPU, "-nodefaults", "-no-reboot"]);
        qemu.args(["-display", "none", "-m", &options.memory.to_string()]);
        qemu.args(["-smp", &options.processors.to_string()]);
        qemu.arg("-serial").arg(format!("file:{}", console.display()));
        qemu.arg("-kernel").arg(&kernel.image).arg("-initrd").arg(image);
        qemu.arg("-append").arg(format!(
            "console=ttyS0 quiet panic=-1 oops=panic nowatchdog workqueue.watchdog_thresh=0 \
             net.ifnames=0 mitigations=off lsm= nokaslr no_timer_check {} lab.guest={number} \
             lab.mtu={}",
            std::env::var("URXE_LAB_APPEND").unwrap_or_default(),
            options.mtu
        ));
        let taps = [(link::tap(number), 0x88, options.mtu), (link::order_tap(number), 0x89, 1500)];
        for (tap, net, mtu) in taps {
            qemu.arg("-netdev");
            qemu.arg(format!("tap,id={tap},ifname={tap},script=no,downscript=no,vhost=off"));
            qemu.arg("-device");
            qemu.arg(format!(
                "virtio-net-pci,netdev={tap},mac=52:54:00:{net:02x}:00:{number:02x},\
                 host_mtu={mtu},romfile="
            ));
        }
        let errors = said.try_clone().map_err(LabError::file(&log))?;
        let qemu = qemu.stdin(Stdio::null()).stdout(said).stderr(errors);
        let qemu = qemu.spawn().map_err(LabError::file("setpriv"))?;
        Ok(Self { number, watch: Watch::new(number, console, qemu) })
    }

    /// Its number, from 1.
    #[must_use]
    pub const fn number(&self) -> u8 {
        self.number
    }

    /// Waits until its agent answers.
    pub(crate) fn wait(&self) -> Result<(), LabError> {
        let end = Instant::now() + BOOT;
        loop {
            if let Some(died) = self.watch.died() {
                return Err(self.problem(died.to_string()));
            }
            let session = connect(self.number, CONNECT)
                .and_then(|stream| Session::new(stream, Some(self.watch.clone())));
            if let Ok(mut session) = session
                && let Ok((0, _)) = session.exec("rdma link show rxe0/1")
            {
                return Ok(());
            }
            if Instant::now() > end {
                return Err(self.problem(format!("its agent did not answer in {BOOT:?}")));
            }
            std::thread::sleep(PAUSE);
        }
    }

    /// Whether it lives.
    #[must_use]
    pub const fn watch(&self) -> &Watch {
        &self.watch
    }

    /// A session with its agent.
    ///
    /// # Errors
    /// Where the agent does not answer.
    pub fn session(&self) -> Result<Session, LabError> {
        self.watch.session()
    }

    fn problem(&self, problem: String) -> LabError {
        let mut lines = Vec::new();
        let console = self.watch.console().to_owned();
        for path in [console.with_file_name(format!("qemu-{}", self.number)), console] {
            let text = std::fs::read(path).unwrap_or_default();
            let text = String::from_utf8_lossy(&text).into_owned();
            let last = text.lines().rev().take(15).map(str::to_owned).collect::<Vec<_>>();
            lines.extend(last.into_iter().rev());
        }
        LabError::Guest { guest: self.number, problem, console: lines.join("\n") }
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.watch.kill();
    }
}
