//! Messages of netlink, written one behind the other.

/// A request that is answered even if all goes well: `NLM_F_REQUEST | NLM_F_ACK`.
pub(crate) const ASKING: u16 = REQUEST | 0x4;
/// `NLM_F_REQUEST`.
pub(crate) const REQUEST: u16 = 0x1;
/// `NLM_F_CREATE`.
pub(crate) const CREATE: u16 = 0x400;
/// `NLM_F_APPEND`.
pub(crate) const APPEND: u16 = 0x800;

/// Marks an attribute that holds attributes: `NLA_F_NESTED`.
const NESTED: u16 = 0x8000;
const HEADER_BYTES: usize = 16;

/// Messages that are sent together.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    bytes: Vec<u8>,
    count: u32,
    /// Where the last one starts.
    last: usize,
}

impl Messages {
    /// Adds a message of a kind: the fixed part of its family, then attributes. Returns its number, which its answer bears.
    pub(crate) fn add(
        &mut self,
        kind: u16,
        flags: u16,
        fixed: &[u8],
        attributes: impl FnOnce(&mut Attributes<'_>),
    ) -> u32 {
        self.count += 1;
        let start = self.bytes.len();
        self.last = start;
        self.bytes.extend([0; 4]);
        self.bytes.extend(kind.to_ne_bytes());
        self.bytes.extend(flags.to_ne_bytes());
        self.bytes.extend(self.count.to_ne_bytes());
        self.bytes.extend([0; 4]);
        debug_assert_eq!(self.bytes.len() - start, HEADER_BYTES);
        self.bytes.extend(fixed);
        pad(&mut self.bytes);
        attributes(&mut Attributes(&mut self.bytes));
        let length = (self.bytes.len() - start) as u32;
        self.bytes[start..start + 4].copy_from_slice(&length.to_ne_bytes());
        self.count
    }

    /// Has the last one answered even if all goes well. Returns its number.
    pub(crate) fn ask_for_last(&mut self) -> u32 {
        if let Some(flags) = self.bytes.get_mut(self.last + 6..self.last + 8) {
            flags.copy_from_slice(
                &(u16::from_ne_bytes([flags[0], flags[1]]) | ASKING).to_ne_bytes(),
            );
        }
        self.count
    }

    /// All of it, as it is sent.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// Where the attributes of a message, or of an attribute, are written to.
pub(crate) struct Attributes<'a>(&'a mut Vec<u8>);

impl Attributes<'_> {
    /// Adds one with this value.
    pub(crate) fn add(&mut self, kind: u16, value: &[u8]) {
        self.hold(kind, |bytes| bytes.extend(value));
    }

    /// Adds a number in the order of the network, as netfilter wants it.
    pub(crate) fn number(&mut self, kind: u16, value: u32) {
        self.add(kind, &value.to_be_bytes());
    }

    /// Adds a text with a zero behind it.
    pub(crate) fn text(&mut self, kind: u16, value: &str) {
        self.hold(kind, |bytes| {
            bytes.extend(value.as_bytes());
            bytes.push(0);
        });
    }

    /// Adds one that holds others.
    pub(crate) fn nest(&mut self, kind: u16, attributes: impl FnOnce(&mut Attributes<'_>)) {
        self.hold(NESTED | kind, |bytes| attributes(&mut Attributes(bytes)));
    }

    fn hold(&mut self, kind: u16, value: impl FnOnce(&mut Vec<u8>)) {
        let start = self.0.len();
        self.0.extend([0; 2]);
        self.0.extend(kind.to_ne_bytes());
        value(self.0);
        // The length counts no padding of its own.
        let length = (self.0.len() - start) as u16;
        self.0[start..start + 2].copy_from_slice(&length.to_ne_bytes());
        pad(self.0);
    }
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_count_what_is_in_and_everything_lies_on_four_bytes() {
        let mut messages = Messages::default();
        messages.add(7, ASKING, &[1, 0, 0, 0], |attributes| {
            attributes.text(1, "ab");
            attributes.nest(4, |inner| {
                inner.add(1, &[9]);
                inner.number(2, 1);
            });
        });
        let second = messages.add(8, REQUEST, &[], |_| {});
        assert_eq!(second, 2);
        let bytes = messages.bytes();
        let number = |at: usize| u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four"));
        let short = |at: usize| u16::from_ne_bytes(bytes[at..at + 2].try_into().expect("two"));
        // Header, fixed part, text (4 + 3, padded), nest (4 + (4 + 1, padded) + (4 + 4)).
        assert_eq!(number(0), 16 + 4 + 8 + 4 + 8 + 8);
        assert_eq!((short(4), short(6), number(8)), (7, ASKING, 1));
        assert_eq!(
            (short(20), short(22), &bytes[24..28]),
            (7, 1, &b"ab\0\0"[..])
        );
        assert_eq!((short(28), short(30)), (20, NESTED | 4));
        assert_eq!((short(32), bytes[36]), (5, 9));
        assert_eq!(bytes[44..48], [0, 0, 0, 1]);
        assert_eq!((number(48), bytes.len()), (16, 64));
    }
}
