//! Scripts with one mistake each: the differential must find every one, or it proves nothing.

use std::cell::RefCell;
use std::sync::Mutex;
use std::thread;

use bandog_fake::Fake;
use bandog_redis::Script;
use proptest::test_runner::Config;

use crate::config;
use crate::differential::try_play;
use crate::many;
use crate::tally::Tally;

/// More cases than any of them has needed, by far.
const CASES: u32 = 2_000;
const LENGTH: usize = 200;

/// What stands in the scripts, and what stands there by mistake.
static MISTAKES: [(&str, &str); 83] = [
    // fast paths
    ("    stamp = last + 1\n", "    stamp = last\n"),
    ("if ballot > stamp then", "if false then"),
    ("      ends = now + math.ceil((stamp - us) / 1000)\n", ""),
    ("if mode == 0 and lease <= longest and", "if mode == 0 and"),
    (" and (not s or plain and string.byte(s) == form) then", " then"),
    ("seen <= now and till > now then\n    ends", "seen <= now and till >= now then\n    ends"),
    ("expires <= now or till <= now then", "expires <= now or till < now then"),
    ("  if length ~= left then\n", "  if false then\n"),
    // a string whose key knows the end
    ("started + left <= now", "started + left < now"),
    ("<= now or length ~= left\n", "<= now\n"),
    ("if now < seen or now < started", "if false"),
    ("ends = math.min(ends, asked", "ends = math.max(0, asked"),
    ("/ 1000) + left - behind)", "/ 1000) + left)"),
    ("last, now, ends + behind, late", "last, now, ends, late"),
    // formats
    ("if found == form and mode == 0 and lease", "if s and mode == 0 and lease"),
    ("again == 0 and found == form and", "again == 0 and s and"),
    ("  if found and found ~= form then\n", "  if false then\n"),
    ("string.byte(card, 48) == 0 and letter or '\\3' .. letter", "letter .. '\\3'"),
    // among many
    ("not s and kind == 1 and redis.call('EXISTS', key) == 0", "not s and kind == 1"),
    ("stamps[place] = record and (stamp or 1) or 0", "stamps[place] = now"),
    // a string, or a hash
    ("large == 0 and string.byte(f.get('h1'), 9) == 0", "large == 0"),
    ("if s and fresh then", "if s and not r.known then"),
    ("if plain or not r.known then", "if not r.known then"),
    ("ipairs(plain and {} or redis.call('HKEYS', key))", "ipairs(redis.call('HKEYS', key))"),
    // joining a line
    ("waiting < struct.unpack('>I4', ARGV[1])", "waiting <= struct.unpack('>I4', ARGV[1])"),
    ("alive > 0 and waiting", "waiting"),
    ("entries = others + 1", "entries = others"),
    ("(fair == 1 and fairs == 0)) and (fairs", "false) and (fairs"),
    ("if not front or front_life and (struct.unpack('>I8', front_life)) > now then", "if true then"),
    // handing over
    ("length > 0 and not linked", "length > 0"),
    ("and (struct.unpack('>I8', lives[2])) > now", ""),
    ("head + 1, entries - 1\n", "head + 1, entries\n"),
    ("math.max(now, till, late, latest, lively)", "math.max(now, till, late, latest)"),
    ("'>I8I4B', stamp, waiting, fairs > 0", "'>I8I4B', stamp, waiting + 1, fairs > 0"),
    ("'>I8I4B', stamp, waiting, fairs > 0 and 1 or 0)", "'>I8I4B', stamp, waiting, fair)"),
    // renewing with a line behind
    ("if waiting == 0 or life and (struct.unpack('>I8', life)) > now then", "if true then"),
    ("mode == 0 and upgrading == 0 and expires", "upgrading == 0 and expires"),
    ("return {now, 0, 1, own, left, waiting,", "return {now, 0, 1, own, left, head,"),
    // holders
    ("if h and h.till <= now then", "if h and h.till < now then"),
    ("r.n < r.sharers", "r.n <= r.sharers"),
    ("r.permits + count <= of", "r.permits + count < of"),
    ("math.min(h.till - now, h.length)", "h.till - now"),
    ("    r.top = slot\n", "    r.top = r.top\n"),
    ("return x > y", "return x < y"),
    // done marks
    ("read('>I8', till) >= now", "read('>I8', till) > now"),
    ("if till < now or old and till <= read('>I8', old) then", "if till < now then"),
    // the queue
    ("    f.link(behind, before, select(2, f.links(behind)))\n", ""),
    ("    r.tail = before\n", ""),
    ("return not till or till <= now", "return not till or till < now"),
    ("math.min(at - r.head, r.waiting - 1)", "at - r.head"),
    ("f.refresh(c.box, c.alive, 0)", ""),
    ("    r.waiting + r.upgrading}", "    r.waiting}"),
    // settling and closing
    ("if not lapsed and r.n > 1 then", "if not lapsed and r.n > 2 then"),
    ("math.max(math.min(c.window, c.lease), at_least)", "math.min(c.window, c.lease)"),
    ("'>I8I4B', r.last, r.waiting, r.fairs > 0", "'>I8I4B', r.last, r.waiting + 1, r.fairs > 0"),
    ("'>I8I4B', r.last, r.waiting, r.fairs > 0 and 1 or 0)", "'>I8I4B', r.last, r.waiting, 0)"),
    ("c.fair == 1 and r.fairs == 0", "false"),
    ("    f.mark(c.id, c.not_after)\n    return r.upgrading", "    return r.upgrading"),
    ("elseif not r.more and not f.somebody_waits()", "elseif not f.somebody_waits()"),
    ("r.top_end, r.lively)", "r.top_end)"),
    ("  if not f.somebody_waits() then\n    r.lively = 0\n  end\n", ""),
    ("    r.late, r.cap = 0, 0\n", ""),
    // taking a hold again
    ("if mode == 0 and lease <= longest", "if mode % 3 == 0 and lease <= longest"),
    ("if found == form and mode == 0 and lease", "if found == form and mode % 3 == 0 and lease"),
    ("if c.after and c.after ~= last then", "if c.after and c.after < last then"),
    ("if c.after and c.after ~= last then", "if c.after and c.after > last then"),
    ("    c.after, r.rest = read('>I8', ARGV[1], r.rest)\n", "    r.rest = r.rest + 8\n"),
    ("local last = r.known and r.last or 0", "local last = r.last"),
    ("if stamp == c.after then", "if false then"),
    ("if stamp == c.after then", "if true then"),
    ("for at = #list, 1, -1 do", "for at = 1, #list do"),
    ("string.sub(list[at], reason, reason + size - 1)", "string.sub(list[at], reason, reason + size)"),
    // the audit
    ("large = r.audit > 0 and 2 or large and 1 or 0", "large = large and 1 or 0"),
    ("math.max(ends + r.retention, r.audit)", "ends + r.retention"),
    ("if r.audit > 0 and r.audit <= now then", "if false then"),
    ("r.audit = math.min(r.audit, now + read('>I8', f.get('v')))", "r.audit = r.audit"),
    ("r.audit > now and f.get('v')", "f.get('v')"),
    // what those are told whose hold has ended
    ("reply[#reply + 1] = r.audit > 0 and f.get('v') or nil", ""),
    ("f.finish(f.ended({0}))\nelseif h.revoked", "f.finish({0})\nelseif h.revoked"),
    ("f.finish(f.ended({0}))\nelseif h.mode", "f.finish({0})\nelseif h.mode"),
    ("return f.ended({4, 6})", "return {4, 6}"),
    ("parted == 0 and f.ended(reply) or reply", "reply"),
    ("over = over or not standing", "over = not standing"),
];

/// The same for what those in one call have in common, or what keeps them apart.
const AMONG_MANY: [(&str, &str); 9] = [
    ("if stamp ~= packed_stamp or ", "if "),
    (" or not_after ~= packed_late", ""),
    (" or lease ~= packed_lease", ""),
    ("if ends ~= rest_end then", "if not rest_end then"),
    ("string.sub(s, 1, 8) .. rest", "struct.pack('>I8', us) .. rest"),
    ("if till ~= spelled then", "if not spelled then"),
    ("changed[place * 2 - 1], spelling", "KEYS[place], spelling"),
    ("stamps[place] = record", "stamps[#stamps + 1] = place > 1 and record"),
    ("at = behind + length\n", "at = behind + 24\n"),
];

/// A server whose scripts say the one instead of the other.
fn mistaken(right: &str, wrong: &str) -> Fake {
    let present = Script::ALL.iter().any(|script| script.text().contains(right));
    assert!(present, "no script says {right:?} any more");
    Fake::with(|script| script.text().replace(right, wrong))
}

fn quick(cases: u32) -> Config {
    Config { max_shrink_iters: 0, ..config(cases) }
}

fn finds(right: &str, wrong: &str) -> bool {
    try_play(&mistaken(right, wrong), &RefCell::new(Tally::default()), quick(CASES), LENGTH).is_err()
}

#[test]
fn without_a_mistake_nothing_is_found() {
    let fake = mistaken("local key = KEYS[1]", "local key = KEYS[1] ");
    try_play(&fake, &RefCell::new(Tally::default()), quick(100), LENGTH).expect("both agree");
}

#[test]
fn every_mistake_is_found() {
    // It takes longer than everything beside it.
    let (left, missed) = (Mutex::new(MISTAKES.iter()), Mutex::new(Vec::new()));
    let search = || {
        let next = || left.lock().unwrap().next();
        while let Some((right, wrong)) = next() {
            if !finds(right, wrong) {
                missed.lock().unwrap().push((right, wrong));
            }
        }
    };
    thread::scope(|scope| [scope.spawn(search), scope.spawn(search)].map(drop));
    let missed = missed.into_inner().unwrap();
    assert!(missed.is_empty(), "not found: {missed:#?}");
}

#[test]
fn every_mistake_among_many_is_found() {
    let missed = AMONG_MANY.iter().filter(|(right, wrong)| many::try_play(&mistaken(right, wrong), quick(500)).is_ok());
    assert_eq!(missed.collect::<Vec<_>>(), Vec::<&(&str, &str)>::new(), "not found");
}
