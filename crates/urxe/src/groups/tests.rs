use super::*;
use crate::{Config, Context, QKey, QpKind};

fn datagrams(context: &Context) -> crate::Qp {
    let (pd, cq) = (context.alloc_pd().unwrap(), context.create_cq(4).unwrap());
    pd.qp(QpKind::Ud).cq(&cq).build().unwrap()
}

#[test]
fn a_qp_that_is_not_in_a_group_is_told_which() {
    let context = Context::open(&Config::default()).unwrap();
    let qp = datagrams(&context);
    qp.ready(QKey(1)).unwrap();
    let group: IpAddr = "239.1.2.78".parse().unwrap();
    qp.attach_mcast(group).unwrap();
    qp.detach_mcast(group).unwrap();
    let error = qp.detach_mcast(group).unwrap_err().to_string();
    assert!(error.contains("is not in the group 239.1.2.78"), "{error}");
}

#[test]
fn a_qp_in_init_stays_there_and_one_that_is_ready_is_refused() {
    let context = Context::open(&Config::default()).unwrap();
    let qp = datagrams(&context);
    qp.init().unwrap();
    qp.init().unwrap();
    assert_eq!(qp.query().unwrap().attr.qp_state, crate::QpState::Init);
    qp.ready(QKey(1)).unwrap();
    assert!(qp.init().is_err(), "it would stop what is under way");
}
