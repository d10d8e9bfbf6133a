//! Other users of a QP.

use std::sync::Arc;

use crate::events::Affected;
use crate::handle::Handle;
use crate::{Context, Error, Qp};

/// One more user of a QP, as XRC targets may have: its asynchronous events come to an opening of
/// the device for this user, too, until this is dropped. It keeps the QP alive.
///
/// ```
/// use std::sync::Arc;
/// use urxe::{AsyncEvent, Config, Context, QpKind, QpShare};
///
/// let context = Context::open(&Config::default())?;
/// let (pd, xrcd) = (context.alloc_pd()?, context.alloc_xrcd()?);
/// let qp = Arc::new(pd.qp(QpKind::XrcTarget).xrcd(&xrcd).build()?);
/// let other = context.again()?;
/// let share = QpShare::new(&qp, &other)?;
/// qp.init()?;
/// qp.fail()?;
/// let told = AsyncEvent::QpLastWqeReached(qp.qpn());
/// assert_eq!(context.take_async_event_of(), Some((told, 0)));
/// assert_eq!(other.take_async_event_of(), Some((told, share.number())));
/// # Ok::<(), urxe::Error>(())
/// ```
#[derive(Debug)]
pub struct QpShare {
    qp: Arc<Qp>,
    number: u32,
    opening: Arc<Handle>,
}

impl QpShare {
    /// Makes `context` hear of the events of `qp`.
    ///
    /// # Errors
    /// [`Error::Forked`]; where the QP is another device's.
    pub fn new(qp: &Arc<Qp>, context: &Context) -> Result<Self, Error> {
        let opening = Arc::clone(&context.device);
        let device = opening.live()?;
        if !std::ptr::eq(device, qp.live()?) {
            return Err(Error::OtherDevice { what: "QP" });
        }
        let number = device.events.share(Affected::Qp(qp.qpn()), &opening);
        Ok(Self { qp: Arc::clone(qp), number, opening })
    }

    /// What its events come with; see [`Context::take_async_event_of`].
    #[must_use]
    pub const fn number(&self) -> u32 {
        self.number
    }
}

impl Drop for QpShare {
    fn drop(&mut self) {
        let Ok(device) = self.opening.live() else { return };
        device.events.leave(&device.nic, Affected::Qp(self.qp.qpn()), self.number);
    }
}
