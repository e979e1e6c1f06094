//! Walks every error: whose fault it is, what the peer is told, how it reads.

use openenv_ws::{Connection, Error, Fault, HandshakeError, Limits, Role, Unmasked};

const ERRORS: [(Error, u16, Fault); 20] = [
    (Error::ConnectionClosed, 1011, Fault::Local),
    (Error::ControlTooLong, 1002, Fault::Remote),
    (Error::ExpectedContinuation, 1002, Fault::Remote),
    (Error::ForeignFrameStart, 1011, Fault::Local),
    (Error::FragmentedControl, 1002, Fault::Remote),
    (Error::InvalidCloseCode, 1002, Fault::Remote),
    (Error::InvalidClosePayload, 1002, Fault::Remote),
    (Error::InvalidUtf8, 1007, Fault::Remote),
    (Error::LengthTooLarge, 1002, Fault::Remote),
    (Error::MaskedFrame, 1002, Fault::Remote),
    (Error::MessageTooBig { limit: usize::MAX }, 1009, Fault::Limit),
    (Error::NonMinimalLength, 1002, Fault::Remote),
    (Error::OversizedControl, 1011, Fault::Local),
    (Error::PendingControlFull, 1011, Fault::Limit),
    (Error::ReservedBits, 1002, Fault::Remote),
    (Error::ReservedOpcode, 1002, Fault::Remote),
    (Error::UnexpectedContinuation, 1002, Fault::Remote),
    (Error::UnexpectedEof, 1006, Fault::Remote),
    (Error::UnmaskedFrame, 1002, Fault::Remote),
    (Error::UnsendableCloseCode, 1011, Fault::Local),
];

fn is_sentence(text: &str) -> bool {
    !text.is_empty() && !text.ends_with('.') && !text.contains('\n')
}

#[test]
fn each_error_has_its_close_code_and_fault() {
    for (error, code, fault) in ERRORS {
        assert_eq!((code, fault), (error.close_code(), error.fault()), "{error:?}");
    }
}

#[test]
fn each_error_is_a_sentence_that_a_close_frame_can_carry() {
    for (error, code, _) in ERRORS {
        let text = error.to_string();
        let mut connection = Connection::new(Role::Server, Limits::default());

        assert!(is_sentence(&text), "{text}");
        assert!(text.starts_with(|first: char| first.is_lowercase()), "{text}");

        if code != 1006 {
            assert_eq!(Ok(()), connection.close(code, &text, &mut Unmasked), "{text}");
        }
    }
}

#[test]
fn each_handshake_error_is_refused_with_its_status_or_not_a_servers_business() {
    let name = String::from("x\r\ny");
    let refused = HandshakeError::Refused { status: 403, headers: vec![], body: vec![] };
    let cases = [
        (HandshakeError::AcceptedUnofferedSubprotocol, None, Fault::Local),
        (HandshakeError::BadKey, Some(400), Fault::Remote),
        (HandshakeError::Finished, None, Fault::Local),
        (HandshakeError::HeadTooLarge { limit: 1 }, Some(431), Fault::Limit),
        (HandshakeError::InvalidHeader, Some(400), Fault::Remote),
        (HandshakeError::MissingAccept, None, Fault::Remote),
        (HandshakeError::MissingConnection, Some(400), Fault::Remote),
        (HandshakeError::MissingHost, Some(400), Fault::Remote),
        (HandshakeError::MissingKey, Some(400), Fault::Remote),
        (HandshakeError::MissingUpgrade, Some(426), Fault::Remote),
        (HandshakeError::NotGet, Some(405), Fault::Remote),
        (HandshakeError::NotHttp, Some(400), Fault::Remote),
        (refused, None, Fault::Remote),
        (HandshakeError::ReservedHeader { name: name.clone() }, None, Fault::Local),
        (HandshakeError::TooManyHeaders { limit: 1 }, Some(431), Fault::Limit),
        (HandshakeError::UnexpectedBody, Some(400), Fault::Remote),
        (HandshakeError::UnofferedExtension, None, Fault::Remote),
        (HandshakeError::UnofferedSubprotocol, None, Fault::Remote),
        (HandshakeError::UnsendableHeader { name }, None, Fault::Local),
        (HandshakeError::UnsendableHost, None, Fault::Local),
        (HandshakeError::UnsendableStatus, None, Fault::Local),
        (HandshakeError::UnsendableSubprotocol, None, Fault::Local),
        (HandshakeError::UnsendableTarget, None, Fault::Local),
        (HandshakeError::UnsupportedHttpVersion, Some(505), Fault::Remote),
        (HandshakeError::UnsupportedVersion, Some(426), Fault::Remote),
        (HandshakeError::WrongAccept, None, Fault::Remote),
    ];
    for (error, status, fault) in cases {
        assert_eq!(status, error.status().map(|(status, _)| status), "{error:?}");
        assert_eq!(fault, error.fault(), "{error:?}");
        assert!(is_sentence(&error.to_string()), "{error}");
    }
}
