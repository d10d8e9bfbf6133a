use urxe_wire::{
    CmMessage, FieldValue, Fields, MAD_HEADER_LEN, MAD_LEN, MadHeader, Repr,
    cm::{IpHeader, Req, SidrReq},
};

/// A MAD is taken or refused; what is taken is emitted byte for byte, and each of its fields and
/// helpers can be asked for. Bytes of another length are cut or filled up to 256 and tried again.
///
/// # Panics
/// Where emitted bytes differ from those that were parsed.
pub fn mad(data: &[u8]) {
    whole(data);
    let mut mad = [0; MAD_LEN];
    let len = data.len().min(MAD_LEN);
    mad[..len].copy_from_slice(&data[..len]);
    whole(&mad);
    // Most mutations break the four bytes that every CM message begins with: mend them.
    mad[..4].copy_from_slice(&[1, 7, 2, 3]);
    mad[16] = 0;
    whole(&mad);

    same::<MadHeader>(&mad);
    same::<IpHeader>(&mad[MAD_HEADER_LEN..]);
}

/// Parses and emits a MAD.
fn whole(bytes: &[u8]) {
    let Ok((header, message)) = CmMessage::parse(bytes) else { return };
    let mut out = [0xa5; MAD_LEN];
    assert_eq!(message.emit(&header, &mut out), Ok(MAD_LEN));
    assert_eq!(out, bytes, "{}", message.name());
    walk(&header);
    walk(&message);
    match message {
        CmMessage::Req(req) => request(&req),
        CmMessage::SidrReq(req) => sidr(&req),
        CmMessage::Rej(rej) => info(rej.info_length, rej.additional_info()),
        CmMessage::SidrRep(rep) => info(rep.info_length, rep.additional_info()),
        CmMessage::Apr(apr) => info(apr.info_length, apr.additional_info()),
        _ => {}
    }
}

fn request(req: &Req) {
    if let Ok((ip, data)) = req.ip_header() {
        assert_eq!(ip.with_data(data), Ok(req.private_data));
    }
}

fn sidr(req: &SidrReq) {
    if let Ok((ip, data)) = req.ip_header() {
        assert_eq!(ip.with_data(data), Ok(req.private_data));
    }
}

/// Additional information is as long as it says, or refused where that is more than 72 bytes.
fn info(len: u8, info: urxe_wire::Result<&[u8]>) {
    assert_eq!(info.map(<[u8]>::len).ok(), (len <= 72).then_some(len.into()));
}

fn same<T: Repr>(bytes: &[u8]) {
    let Ok((value, _)) = T::parse(bytes) else { return };
    let mut out = [0xa5; MAD_LEN];
    let len = value.emit(&mut out).expect("room for any header");
    assert_eq!(out[..len], bytes[..len]);
}

/// Names and writes every field, those of groups too.
fn walk(fields: &dyn Fields) {
    fields.for_each_field(&mut |name, _, value| {
        assert!(!name.is_empty());
        match value {
            FieldValue::Group(group) => walk(group),
            value => drop(value.to_string()),
        }
    });
}
