//! What a notification says: the run of the server, the news and the lock, on a channel that is the inbox's own.

use std::fmt::Write;

use bandog_core::format::Format;
use bandog_core::holder::InboxId;
use bandog_core::name::LockName;
use bandog_core::op::News;
use bandog_core::store::Push;
use bandog_core::time::RunId;

/// The longest payload of a notification.
const LONGEST: usize = 7_999;

pub(crate) fn channel(inbox: InboxId) -> String {
    format!("bandog_{:016x}", inbox.to_bits())
}

/// The inbox of a channel.
pub(crate) fn inbox(channel: &str) -> Option<InboxId> {
    let digits = channel.strip_prefix("bandog_").filter(|digits| digits.len() == 16)?;
    u64::from_str_radix(digits, 16).ok().map(InboxId::from_bits)
}

/// Nothing for what is too long: a heartbeat or a renewal tells it.
pub(crate) fn payload(run: RunId, name: &LockName, news: &News) -> Option<String> {
    let bytes = bandog_record::encode_news(news, Format::NEWEST).ok()?;
    let mut payload = format!("{:016x}:", run.0);
    for byte in bytes {
        write!(payload, "{byte:02x}").ok()?;
    }
    write!(payload, ":{name}").ok()?;
    Some(payload).filter(|payload| payload.len() <= LONGEST)
}

/// Anybody in the database may say anything: what is no news is nothing.
pub(crate) fn read(payload: &str) -> Option<Push> {
    let (run, rest) = payload.split_once(':')?;
    let (digits, name) = rest.split_once(':')?;
    let run = RunId(u64::from_str_radix(run, 16).ok()?);
    let (pairs, []) = digits.as_bytes().as_chunks::<2>() else { return None };
    let byte = |pair: &[u8; 2]| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok();
    let bytes = pairs.iter().map(byte).collect::<Option<Vec<u8>>>()?;
    let news = bandog_record::decode_news(&bytes).ok()?;
    Some(Push { name: LockName::new(name).ok()?, run, news })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn news_is_read_as_it_was_written() {
        let name = LockName::new("order:1001 ß:x").unwrap();
        for news in [News::Waiting { fair: true }, News::Revoked { number: 7, reason: "tea: 🫖".into() }] {
            let payload = payload(RunId(9), &name, &news).unwrap();
            assert_eq!(read(&payload), Some(Push { name: name.clone(), run: RunId(9), news }));
        }
    }

    #[test]
    fn channel_is_one_inbox() {
        let id = InboxId::from_bits(0xfedc_ba98_0000_0001);
        assert_eq!(inbox(&channel(id)), Some(id));
        assert_eq!(inbox("bandog_1"), None);
    }

    #[test]
    fn payload_that_is_no_news_is_ignored() {
        for payload in
            ["", ":", "::", "0:0:job", "0:zz:job", "0:ß1:job", "0:0301:", "0:09:job", "+1:+1:job", "0:0301ff:job"]
        {
            assert_eq!(read(payload), None, "{payload}");
        }
    }

    #[test]
    fn news_too_long_for_a_notification_is_left_out() {
        let news = News::Revoked { number: 7, reason: "x".repeat(4_000) };
        assert_eq!(payload(RunId(1), &LockName::new("job").unwrap(), &news), None);
    }
}
