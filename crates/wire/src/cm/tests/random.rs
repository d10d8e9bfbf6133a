//! Random messages: nothing panics, and what is taken is sent again byte for byte.

use core::fmt::Debug;

use proptest::prelude::*;

use crate::{Fields, MAD_LEN, MadHeader, Repr, cm::*};

fn mad() -> impl Strategy<Value = [u8; MAD_LEN]> {
    prop::collection::vec(any::<u8>(), MAD_LEN).prop_map(|v| v.try_into().unwrap())
}

/// Value → bytes → value and bytes → value → bytes, for any bytes.
fn both_ways<T: Repr + PartialEq + Debug>(bytes: &[u8]) -> Result<(), TestCaseError> {
    let (value, rest) = T::parse(bytes).unwrap();
    let mut out = [0; MAD_LEN];
    let len = value.emit(&mut out).unwrap();
    prop_assert_eq!(&out[..len], &bytes[..len]);
    prop_assert_eq!(rest.len(), bytes.len() - len);
    prop_assert_eq!(T::parse(&out[..len]).unwrap().0, value);
    Ok(())
}

proptest! {
    #[test]
    fn each_message_goes_both_ways(mad in mad()) {
        let body = &mad[24..];
        both_ways::<MadHeader>(&mad)?;
        both_ways::<Req>(body)?;
        both_ways::<Mra>(body)?;
        both_ways::<Rej>(body)?;
        both_ways::<Rep>(body)?;
        both_ways::<Rtu>(body)?;
        both_ways::<Dreq>(body)?;
        both_ways::<Drep>(body)?;
        both_ways::<SidrReq>(body)?;
        both_ways::<SidrRep>(body)?;
        both_ways::<Lap>(body)?;
        both_ways::<Apr>(body)?;
    }

    #[test]
    fn a_whole_mad_goes_both_ways(mut mad in mad(), attribute in 0x10..=0x1a_u8) {
        mad[..4].copy_from_slice(&[1, 7, 2, 3]);
        mad[16..18].copy_from_slice(&[0, attribute]);
        let (header, message) = CmMessage::parse(&mad).unwrap();
        let mut out = [0; MAD_LEN];
        prop_assert_eq!(message.emit(&header, &mut out), Ok(MAD_LEN));
        prop_assert_eq!(out, mad);
        prop_assert_eq!(message.attribute().code(), u16::from(attribute));
        message.for_each_field(&mut |name, _, value| {
            assert!(!name.is_empty());
            let _ = value.to_string();
        });
    }

    #[test]
    fn an_ip_header_goes_both_ways(mad in mad(), version in prop::sample::select(vec![4_u8, 6])) {
        let mut bytes = [0; 36];
        bytes.copy_from_slice(&mad[..36]);
        bytes[0] = 0;
        bytes[1] = version << 4 | bytes[1] & 0xf;
        both_ways::<IpHeader>(&bytes)?;
    }

    #[test]
    fn bytes_of_any_kind_are_taken_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        if let Ok((header, message)) = CmMessage::parse(&bytes) {
            let mut out = [0; MAD_LEN];
            message.emit(&header, &mut out).unwrap();
            prop_assert_eq!(&out[..], &bytes[..]);
        }
        let _ = IpHeader::parse(&bytes);
    }
}
