//! The port in full: operations are encoded, run as Lua on the entry at the key, and what comes back is decoded, news too.

use bandog_core::ledger::Applied;
use bandog_core::name::LockName;
use bandog_core::op::{Effect, News, Op, RecordView};
use bandog_core::time::{Now, RunId};
use bandog_fake::{Entry, Fake};
use bandog_redis::{Call, Codec, Keys, Script, Value};

/// A server without keys, and the codec of its clients.
#[derive(Debug)]
pub(super) struct Scripts {
    fake: Fake,
    codec: Codec,
    name: LockName,
    key: Vec<u8>,
}

impl Scripts {
    pub(super) fn new(text: impl Fn(Script) -> String) -> Self {
        let codec = Codec::new(Keys::default(), super::limits());
        let name = LockName::new("lock").expect("a good name");
        Self { fake: Fake::with(text), key: codec.keys().key(&name), codec, name }
    }

    pub(super) fn apply(&self, entry: &mut Option<Entry>, now: Now, op: &Op) -> Result<Applied, String> {
        let answer = self.ask(entry, now, op);
        let reply = self.codec.reply(op, now.run, answer).map_err(|wrong| format!("{op:?} is answered by {wrong}"))?;
        // An empty message only wakes.
        let published = self.fake.published().into_iter().filter(|(_, payload)| !payload.is_empty());
        let effects = published.map(|(channel, payload)| self.effect(now.run, &channel, &payload));
        let mut effects = effects.collect::<Result<Vec<_>, String>>()?;
        in_order(&mut effects);
        entry.as_ref().map_or(Ok(()), Entry::check).map_err(|rule| format!("after {op:?} {rule}"))?;
        Ok(Applied { reply, effects })
    }

    /// Every other claim and release goes as one of many, and by itself where it does not fit there.
    fn ask(&self, entry: &mut Option<Entry>, now: Now, op: &Op) -> Value {
        let number = match op {
            Op::Acquire(claim) => claim.id.number,
            Op::Release(release) => release.id.number,
            _ => 1,
        };
        let among_many = self.codec.bundled(&self.name, op).filter(|_| number % 2 == 0);
        let answer = match among_many.map(|call| self.run(entry, now, &call)) {
            Some(wrong @ Value::Error(_)) => Some(wrong),
            Some(answer) => Codec::split_answer(answer, 1).pop(),
            None => None,
        };
        let answer = answer.filter(|answer| *answer != Value::Nil);
        answer.unwrap_or_else(|| self.run(entry, now, &self.codec.call(&self.name, op)))
    }

    pub(super) fn peek(&self, entry: &mut Option<Entry>, now: Now) -> Result<Option<RecordView>, String> {
        let answer = self.run(entry, now, &self.codec.peek(&self.name));
        self.codec.peeked(answer).map_err(|wrong| format!("a look is answered by {wrong}"))
    }

    fn run(&self, entry: &mut Option<Entry>, now: Now, call: &Call) -> Value {
        self.fake.set_micros(now.wall.micros());
        self.fake.put(&self.key, entry.take());
        let answer = self.fake.run(call);
        *entry = self.fake.take(&self.key);
        answer
    }

    fn effect(&self, run: RunId, channel: &[u8], payload: &[u8]) -> Result<Effect, String> {
        let inbox = self.codec.keys().inbox(channel).ok_or("news for no inbox")?;
        let push = self.codec.push(run, payload).map_err(|wrong| format!("news cannot be read: {wrong}"))?;
        if push.name != self.name {
            return Err(format!("news of another lock: {}", push.name));
        }
        Ok(Effect { inbox, news: push.news })
    }
}

// Notices for several inboxes go out at once and last; in the ledger's order a seed plays one world on both engines.
fn in_order(effects: &mut [Effect]) {
    let grants = effects.iter().rposition(|effect| !matches!(effect.news, News::Waiting { .. }));
    effects[grants.map_or(0, |at| at + 1)..].sort_by_key(|effect| effect.inbox);
}
