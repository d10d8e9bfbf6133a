//! A lab: a link, and guests on it.

use std::path::{Path, PathBuf};

use crate::cache::{Cache, Kernel};
use crate::{Guest, LabError, Session, image, link, space};

/// What a lab is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// How many guests, 1 to 8.
    pub guests: u8,
    /// The link's MTU, bytes: 1280 to 9000. rxe's path MTU is the largest that fits.
    pub mtu: u16,
    /// Memory of each guest, MiB.
    pub memory: u32,
    /// Processors of each guest.
    pub processors: u8,
}

impl Default for Options {
    fn default() -> Self {
        Self { guests: 1, mtu: 9000, memory: 512, processors: 1 }
    }
}

/// A running lab; dropping it ends its guests. Its links go with the namespace.
#[derive(Debug)]
pub struct Lab {
    guests: Vec<Guest>,
    kernel: Kernel,
    image: PathBuf,
    folder: PathBuf,
    options: Options,
}

impl Lab {
    /// Starts one in the namespace that this process is in ([`space::enter_new`]), and waits until
    /// each guest answers.
    ///
    /// # Errors
    /// [`LabError::CannotRun`] where this machine can run none; else what failed.
    pub fn start(options: &Options) -> Result<Self, LabError> {
        if !space::is_inside() {
            let why = "it must be started in a namespace of its own, which this process is not in";
            return Err(LabError::CannotRun(why.to_owned()));
        }
        let (cache, kernel, image) = parts()?;
        link::make(options.guests, options.mtu)?;
        cache.sweep("run-", |pid| Path::new("/proc").join(pid).exists());
        let folder = cache.path(&format!("run-{}", std::process::id()));
        std::fs::create_dir_all(&folder).map_err(LabError::file(&folder))?;
        let mut lab = Self { guests: Vec::new(), kernel, image, folder, options: *options };
        for number in 1..=options.guests {
            let guest = lab.boot(number)?;
            lab.guests.push(guest);
        }
        lab.guests.iter().try_for_each(Guest::wait)?;
        Ok(lab)
    }

    fn boot(&self, number: u8) -> Result<Guest, LabError> {
        Guest::start(number, &self.kernel, &self.image, &self.folder, &self.options)
    }

    /// Boots guest `number` anew, and waits until it answers; what it was is gone, its console too.
    ///
    /// # Errors
    /// What failed.
    ///
    /// # Panics
    /// Where the lab has fewer guests.
    pub fn replace(&mut self, number: u8) -> Result<(), LabError> {
        let at = usize::from(number) - 1;
        // Its taps are free once it has ended.
        self.guests[at].watch().kill();
        self.guests[at] = self.boot(number)?;
        self.guests[at].wait()
    }

    /// Guest `number`, from 1.
    ///
    /// # Panics
    /// Where the lab has fewer.
    #[must_use]
    pub fn guest(&self, number: u8) -> &Guest {
        &self.guests[usize::from(number) - 1]
    }

    /// A session with the agent of guest `number` of the lab whose namespace this process is in.
    ///
    /// # Errors
    /// Where no agent answers.
    pub fn session(number: u8) -> Result<Session, LabError> {
        let patience = std::time::Duration::from_secs(30);
        Session::new(crate::watch::connect(number, patience)?, None)
    }

    /// The kernel of its guests.
    #[must_use]
    pub const fn kernel(&self) -> &Kernel {
        &self.kernel
    }
}

/// The kernel, and what it boots into.
fn parts() -> Result<(Cache, Kernel, PathBuf), LabError> {
    space::possible()?;
    let cache = Cache::open()?;
    let kernel = cache.kernel()?;
    let image = image::image(&cache, &kernel)?;
    Ok((cache, kernel, image))
}

/// Fetches and builds what guests boot, unless that was done before. From within a namespace of a
/// lab nothing can be fetched.
///
/// # Errors
/// As [`Lab::start`].
pub fn prepare() -> Result<(), LabError> {
    parts().map(drop)
}

impl Drop for Lab {
    fn drop(&mut self) {
        self.guests.clear();
        // Consoles of guests that are gone; what stays, stays in the build's folder.
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}
