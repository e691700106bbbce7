//! Whatever bytes a program sends.

use std::net::Ipv4Addr;

use hickory_proto::op::{Edns, Message, MessageType, Query};
use hickory_proto::rr::RecordType;
use proptest::prelude::*;

use super::super::Names;
use super::super::testing::names_without_servers;
use super::name;

fn valid(kind: u16, with_edns: bool) -> Vec<u8> {
    let mut message = Message::query();
    message.add_query(Query::query(
        name("www.example.com."),
        RecordType::from(kind),
    ));
    if with_edns {
        message.set_edns(Edns::new());
    }
    message.to_vec().unwrap()
}

/// Nothing comes back, or a reply to this very message that can be read.
fn check(names: &Names, packet: &[u8]) {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let stand_in = Some(Ipv4Addr::new(198, 18, 0, 2));
    let answer = runtime.block_on(names.answer(packet, stand_in, true, |_| Ok(())));
    if answer.packet.is_empty() {
        assert!(packet.len() < 12 || packet[2] & 0x80 != 0);
        return;
    }
    assert!(answer.packet.len() <= 4096);
    let reply = Message::from_vec(&answer.packet).unwrap();
    assert_eq!(reply.message_type, MessageType::Response);
    assert_eq!(answer.packet[..2], packet[..2]);
}

proptest! {
    #[test]
    fn no_bytes_do_harm(packet in prop::collection::vec(any::<u8>(), 0..600)) {
        check(&names_without_servers(), &packet);
    }

    #[test]
    fn no_change_to_a_question_does_harm(
        kind in any::<u16>(),
        with_edns in any::<bool>(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..6),
        end in any::<prop::sample::Index>(),
        is_cut in any::<bool>(),
    ) {
        let mut packet = valid(kind, with_edns);
        for (at, byte) in changes {
            let at = at.index(packet.len());
            packet[at] = byte;
        }
        if is_cut {
            packet.truncate(end.index(packet.len()));
        }
        check(&names_without_servers(), &packet);
    }
}
