//! Fixed texts around payloads: exact bytes, and the way back through `split`.

use openenv_proto::{
    Op, ReplyKind, begin_extension, begin_reply, begin_request, end_reply, end_request, split,
};

#[test]
fn requests_have_these_exact_bytes() {
    for (op, expected) in [
        (Op::Close, r#"{"type":"close"}"#),
        (Op::Mcp, r#"{"type":"mcp","data":{"x":1}}"#),
        (Op::Reset, r#"{"type":"reset","data":{"x":1}}"#),
        (Op::State, r#"{"type":"state"}"#),
        (Op::Step, r#"{"type":"step","data":{"x":1}}"#),
    ] {
        let mut out = Vec::new();
        begin_request(op, &mut out);
        if op.has_data() {
            out.extend_from_slice(br#"{"x":1}"#);
        }
        end_request(op, &mut out);

        assert_eq!(expected.as_bytes(), out);
        let envelope = split(&out).unwrap();
        assert_eq!(Some(op), envelope.kind.op());
        assert_eq!(op.has_data(), envelope.data.is_some());
    }
}

#[test]
fn replies_have_these_exact_bytes() {
    for (kind, plain, extended) in [
        (
            ReplyKind::Error,
            r#"{"type":"error","data":{}}"#,
            r#"{"type":"error","data":{},"ext":1}"#,
        ),
        (ReplyKind::Mcp, r#"{"type":"mcp","data":{}}"#, r#"{"type":"mcp","data":{},"ext":1}"#),
        (
            ReplyKind::Observation,
            r#"{"type":"observation","data":{}}"#,
            r#"{"type":"observation","data":{},"ext":1}"#,
        ),
        (
            ReplyKind::State,
            r#"{"type":"state","data":{}}"#,
            r#"{"type":"state","data":{},"ext":1}"#,
        ),
    ] {
        for (with_extension, expected) in [(false, plain), (true, extended)] {
            let mut out = Vec::new();
            begin_reply(kind, &mut out);
            out.extend_from_slice(b"{}");
            if with_extension {
                begin_extension(&mut out);
                out.push(b'1');
            }
            end_reply(kind, &mut out);

            assert_eq!(expected.as_bytes(), out);
            assert_eq!(Some(kind), split(&out).unwrap().kind.reply());
        }
    }
}

#[test]
fn names_lead_back_to_what_they_name() {
    for op in Op::ALL {
        assert_eq!(Some(op), Op::from_name(op.name()));
    }
    for kind in ReplyKind::ALL {
        assert_eq!(Some(kind), ReplyKind::from_name(kind.name()));
    }
    assert_eq!(None, Op::from_name("observation"));
    assert_eq!(None, ReplyKind::from_name("step"));
}
