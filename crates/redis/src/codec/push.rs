//! What the scripts publish: the format (format 2 had no number), a letter, what belongs to it, and the lock's key. Never the secret id.

use bandog_core::format::Format;
use bandog_core::op::{Line, News};
use bandog_core::store::Push;
use bandog_core::time::RunId;
use bandog_core::token::Stamp;

use crate::keys::Keys;
use crate::value::Wrong;

use super::claim::text;

/// Formats are numbers below it.
const FIRST_LETTER: u8 = 32;

pub(super) fn read(keys: &Keys, run: RunId, payload: &[u8]) -> Result<Push, Wrong> {
    let payload = match payload.split_first() {
        Some((&number, rest)) if number < FIRST_LETTER => {
            Format::new(number).map(|_| rest).ok_or(Wrong::Format { what: "a push", number })?
        }
        _ => payload,
    };
    let (news, key) = news(payload).ok_or(Wrong::Nonsense("news cut short"))?;
    let name = keys.name(key).ok_or(Wrong::Nonsense("news of no lock of ours"))?;
    Ok(Push { name, run, news: news? })
}

fn news(payload: &[u8]) -> Option<(Result<News, Wrong>, &[u8])> {
    let (letter, rest) = payload.split_first()?;
    match letter {
        b'G' => {
            let (named, rest) = number(rest)?;
            let (stamp, rest) = number(rest)?;
            let (waiters, rest) = rest.split_first_chunk()?;
            let (fair, rest) = rest.split_first()?;
            let line = Line { waiters: u32::from_be_bytes(*waiters), fair: *fair == 1 };
            Some((Ok(News::Granted { number: named, stamp: Stamp::from_micros(stamp), line }), rest))
        }
        b'W' => rest.split_first().map(|(fair, rest)| (Ok(News::Waiting { fair: *fair == b'1' }), rest)),
        b'R' => {
            let (named, rest) = number(rest)?;
            let (length, rest) = rest.split_first_chunk()?;
            let (reason, rest) = rest.split_at_checked(usize::try_from(u32::from_be_bytes(*length)).ok()?)?;
            Some((text(reason).map(|reason| News::Revoked { number: named, reason }), rest))
        }
        _ => None,
    }
}

fn number(bytes: &[u8]) -> Option<(u64, &[u8])> {
    bytes.split_first_chunk().map(|(number, rest)| (u64::from_be_bytes(*number), rest))
}
