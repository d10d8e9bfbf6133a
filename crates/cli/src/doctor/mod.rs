//! `urxe doctor`: can urxe work here, and if not, what is to be done?

mod checks;
mod report;
mod trial;

use std::io::Write;

use clap::Args;
use urxe::{Config, Context};

use crate::command::{Done, Failure};
use crate::common::Common;
use crate::dissect::Palette;
use report::{Check, Report};

#[cfg(test)]
mod tests;

/// For which device to look.
#[derive(Debug, Args)]
#[command(after_help = "\
It opens the device that the flags and URXE_* variables ask for, and sends from one QP to another \
on this host; nothing leaves it.\n\
Exit status: 0 urxe can work; 1 there is a problem; 2 bad usage.")]
pub struct DoctorArgs {
    /// Settings of the device
    #[command(flatten)]
    pub common: Common,
}

/// Looks at all that a device needs; finds something if there is a problem.
pub(crate) fn run(
    args: &DoctorArgs,
    palette: &Palette,
    out: &mut dyn Write,
) -> Result<Done, Failure> {
    let settings = checks::settings();
    // Flags that cannot be read are bad usage; variables are what a doctor is asked about.
    let config = match settings.is_problem() {
        true => args.common.config_despite_variables()?,
        false => args.common.config()?,
    };
    let mut report = Report::new(args.common.json, *palette, out);
    report.head()?;
    report.add(settings)?;
    let holders = checks::Holders::look();
    let before = crate::host::open_descriptors();
    let opened = Context::open(&config);
    let after = crate::host::open_descriptors();
    report.add(checks::address(&opened))?;
    report.add(checks::port_4791(&holders, opened.is_err()))?;
    for check in checks::rdma() {
        report.add(check)?;
    }
    if let Ok(context) = &opened {
        report.add(checks::mtu(&context.port_caps().interface, context.port_caps().link_mtu))?;
    }
    for name in ["net.core.rmem_max", "net.core.wmem_max"] {
        report.add(checks::buffers(name))?;
    }
    report.add(checks::ipv6())?;
    report.add(checks::raw_rights(&config))?;
    report.add(checks::descriptors(before.zip(after).filter(|_| opened.is_ok())))?;
    if let Ok(context) = &opened {
        trials(&config, context, &mut report)?;
    }
    report.end()
}

/// Sends, and tells how that went.
fn trials(config: &Config, context: &Context, report: &mut Report<'_>) -> std::io::Result<()> {
    let ended = trial::run(config, context);
    if let Ok(seen) = &ended
        && context.port_caps().kind == "udp"
    {
        for check in checks::offload(context.port_caps(), seen) {
            report.add(check)?;
        }
    }
    report.add(match ended {
        Ok(seen) => Check::ok("self-test", seen.to_string()),
        Err(why) => Check::problem(
            "self-test",
            why,
            "see what becomes of the packets: urxe doctor --trace; a firewall that drops UDP \
             port 4791 on loopback does this",
        ),
    })
}
