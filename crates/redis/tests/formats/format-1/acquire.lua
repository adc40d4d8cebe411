-- The clock of a call.
--
-- Leases are counted in milliseconds (now), stamps in microseconds (us). Both stay below 2^53, so they are exact.
-- cost     1 redis.call (TIME)
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = (us - us % 1000) / 1000
-- Opens every call for one lock, after the clock: the numbers that every script looks at.
--
-- A record of numbers alone, which nobody waits for, is a plain string: the numbers that state.lua names. Every other one
-- is a hash, and has them as its field s.
--
-- KEYS[1]  the lock's key, and nothing else is touched
-- ARGV[1]  numbers, packed: waiters, sharers, work, retention, longest lease, then the operation's own from byte 29,
--          then what an inbox's channel begins with
-- returns  the error WRONGTYPE for a string or a hash that is not ours
-- cost     1 redis.call for a string (MGET, which finds no fault with a hash), 2 for a hash (HGET), 3 for nothing
--          (EXISTS)
local key = KEYS[1]
local s = redis.call('MGET', key)[1]
local plain = s
if not s then
  s = redis.call('HGET', key, 's')
end
-- A stamp takes seven bytes of its eight.
if plain and (#s < 37 or string.byte(s) ~= 0) or not s and redis.call('EXISTS', key) == 1 then
  return redis.error_reply('WRONGTYPE what stands at this key is not a lock')
end
-- Acquire, fast path: an exclusive claim for a lock that nobody holds or waits for, and that remembers no done ids.
--
-- ARGV[1]  then the claim: mode, lease, not-after, ballot, count, capacity, window, live-until, fair, try;
--          with 3 added to the mode, so that no fast path takes it, a claim goes on with the stamp it is to follow
-- ARGV[2]  its card: holder id (16 secret bytes, 8 of sequence), inbox (16 hex digits), public id (8 bytes), who
-- returns  at and stamp, packed: granted for the whole lease, nobody waits. Else at, more, the verdict (see enter.lua)
-- cost     4 redis.calls in all (TIME, MGET, SET, PEXPIREAT), 5 when there is no record (HGET and EXISTS, one SET)
local retention, longest, mode, lease, not_after, ballot = struct.unpack('>I8I8BI8I8I8', ARGV[1], 13)
if mode == 0 and lease <= longest and not_after >= now and (plain or not s) then
  local last, seen, expires, late, n = 0, 0, now + 1, 0, 0
  if s then
    last, seen, expires, late, n = struct.unpack('>I8I8I8I8I4', s)
  end
  if n == 0 and expires > now then
    local stamp, till = last + 1, now + lease
    if us > stamp then
      stamp = us
    end
    if ballot > stamp then
      stamp = ballot
    end
    if stamp > 4503599627370495 then
      stamp = 4503599627370495
    end
    expires = till
    if not_after > expires then
      expires = not_after
    end
    if stamp > us and now + math.ceil((stamp - us) / 1000) > expires then
      expires = now + math.ceil((stamp - us) / 1000)
    end
    expires = expires + retention
    local record = struct.pack('>I8I8I8I8I4BI8BBI4I8I8I8I8c0', stamp, now, expires, not_after, 1, 0,
      till, 0, 0, 0, stamp, us, not_after, lease, ARGV[2])
    if s then
      -- To take an end away and give another costs more than to move it.
      redis.call('SET', key, record, 'KEEPTTL')
      redis.call('PEXPIREAT', key, string.format('%d', expires))
    else
      redis.call('SET', key, record, 'PXAT', string.format('%d', expires))
    end
    return struct.pack('>I8I8', now, stamp)
  end
end
-- Acquire, second fast path: an exclusive claim for a lock with one holder goes to the end of the line. Whatever is not
-- plain (a claim that is known, links, upgrades, marks to forget, inboxes that are dead) is left to the engine.
--
-- cost     8 redis.calls in all (TIME, MGET, HGET, HMGET, HGET, HSET, PEXPIREAT, PUBLISH): without the second HGET when
--          the head's inbox is this one, without PUBLISH when the holder knows that somebody waits; the first in line 7
--          (TIME, MGET, SETRANGE, DEL, HSET, PEXPIREAT, PUBLISH)
if s and mode == 0 and lease <= longest and not_after >= now then
  local last, seen, expires, late, n, large = struct.unpack('>I8I8I8I8I4B', s)
  local cap, permits, waiting, fairs, head, tail, place, upgrading, lively, first, final, stale, latest, soonest, top,
    top_end, from = 0, 0, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0, 0, 0, 1, 0, 38
  if large == 1 then
    cap, permits, waiting, fairs, head, tail, place, upgrading, lively, first, final, stale, latest, soonest, top,
      top_end, from = struct.unpack('>I4I4I4I4I8I8I8BI8I8I8I8I8I8I4I8', s, 38)
  end
  local count, of, window, alive, fair, try, rest = struct.unpack('>I4I4I8I8BB', ARGV[1], 54)
  if n == 1 and cap == 0 and of == 0 and upgrading == 0 and expires > now and seen <= now and top == 1 and try == 0
    and alive > 0 and waiting < struct.unpack('>I4', ARGV[1]) and (waiting == 0 or tail == place - 1)
    and (first > final or stale >= now) then
    local till, _, held, _, _, _, _, length = struct.unpack('>I8BBI4I8I8I8I8', s, from)
    if large == 0 then
      soonest, top_end = till, till
    end
    local card, id, box = string.sub(s, from + 46), string.sub(ARGV[2], 1, 24), string.sub(ARGV[2], 25, 40)
    local found = held == 0 and till > now and soonest > now and string.sub(card, 1, 24) ~= id
      and (plain and {} or redis.call('HMGET', key, 'i' .. id, 'd' .. id, 'a' .. box, string.format('w%d', head)))
    if found and not found[1] and not found[2] then
      local life, front = found[3], waiting > 0 and string.sub(found[4], 71, 86)
      local front_life = life
      if front and front ~= box then
        front_life = redis.call('HGET', key, 'a' .. front)
      end
      if not front or front_life and (struct.unpack('>I8', front_life)) > now then
        local ends, span, entries = now + alive, alive, 1
        if life then
          local was, had, others = struct.unpack('>I8I8I4', life)
          entries = others + 1
          if was >= ends then
            ends, span = was, had
          end
        end
        lively, late = math.max(lively, ends), math.max(late, not_after)
        expires = math.max(now, late, latest, top_end, lively)
        if last > us then
          expires = math.max(expires, now + math.ceil((last - us) / 1000))
        end
        expires = expires + retention
        local news = (waiting == 0 or (fair == 1 and fairs == 0)) and (fairs + fair > 0 and 'W1' or 'W0')
        local there = string.format('%d', place)
        if plain then
          -- Writes nothing, but is refused without memory, before anything has gone.
          redis.call('SETRANGE', key, '0', '')
          redis.call('DEL', key)
        end
        redis.call('HSET', key, 's', struct.pack('>I8I8I8I8I4BI4I4I4I4I8I8I8BI8I8I8I8I8I8I4I8c0', last, now, expires,
            late, 1, 1, 0, permits, waiting + 1, fairs + fair, waiting > 0 and head or place, place, place + 1, 0,
            lively, first, final, stale, latest, soonest, 1, top_end, string.sub(s, from)),
          'w' .. there, struct.pack('>BI4BI8I8I8I8I8c0', 0, count, fair, lease, window, not_after, ballot, us, ARGV[2]),
          'i' .. id, struct.pack('>BI8', 2, place), 'a' .. box, struct.pack('>I8I8I4', ends, span, entries))
        redis.call('PEXPIREAT', key, string.format('%d', expires))
        if news then
          redis.pcall('PUBLISH', string.sub(ARGV[1], rest) .. string.sub(card, 25, 40), news .. key)
        end
        return {now, 0, 2, last, waiting, math.min(till - now, length), string.sub(card, 25)}
      end
    end
  end
end
-- The record in memory: its numbers (r), and a cache of its fields that is written back once, at the end.
--
-- fields   s   last seen expires late n; whether more numbers follow (2: and the audit), and those; the hold in slot 1
--          h2… further holds, by slot; i<id> where an id stands (1 slot, 2 place), except for slot 1
--          r<id> the reason a hold was revoked; w<place>, l<place> waiters and their links; u the pending upgrade
--          a<inbox> until, length, entries; d<id>, m<number> done marks and their order; v the last revocations
--
-- numbers  last stamp, seen (the clock of the last call), expires, late (the latest not-after of anybody here),
--          n holds, cap (capacity, 0 for read-write), permits taken; the rest as holders.lua, queue.lua and done.lua say
--
-- Functions are fields of f and numbers are fields of r, so that a function that is made catches few variables; and f
-- is told its fields in advance, so that it is made once, at its size. Both are much of what a slow path costs.
local f = {fetch = 0, get = 0, set = 0, foresee = 0, somebody_waits = 0, hold = 0, save = 0, all = 0, later = 0,
  survey = 0, timed = 0, insert = 0, remove = 0, remaining = 0, fits = 0, find = 0, holder = 0, blocker = 0,
  contains = 0, mark = 0, forget = 0, parse = 0, form = 0, waiter = 0, links = 0, link = 0, life = 0, refresh = 0,
  delist = 0, dead = 0, push = 0, leave = 0, upgrade = 0, take_upgrade = 0, end_hold = 0, end_if_over = 0, expired = 0,
  admit = 0, grant = 0, grant_unclaimed = 0, settle_upgrade = 0, settle_head = 0, advance = 0, settle = 0, granted = 0,
  ended = 0, queued = 0, standing = 0, notify = 0, send = 0, summary = 0, flush = 0, finish = 0}
local cache, changed, order = {}, {}, {}
local read, write, name = struct.unpack, struct.pack, string.format
local SMALL, LARGE, FAR = '>I8I8I8I8I4B', '>I4I4I4I4I8I8I8BI8I8I8I8I8I8I4I8', 4503599627370496
local r = {last = 0, seen = now, expires = FAR, late = 0, n = 0, cap = 0, permits = 0, waiting = 0, fairs = 0,
  head = 0, tail = 0, place = 1, upgrading = 0, lively = 0, first = 1, final = 0, stale = 0, latest = 0, soonest = FAR,
  top = 0, top_end = 0, audit = 0, known = s, holds = {}, waiters = {}}
r.room, r.sharers, r.work, r.retention, r.longest = read('>I4I4I4I8I8', ARGV[1])

if s then
  local large, rest
  r.last, r.seen, r.expires, r.late, r.n, large, rest = read(SMALL, s)
  if r.expires <= now then
    -- Its key should have gone by itself; only the stamp goes on.
    r.known, r.late, r.n, r.seen = false, 0, 0, now
  elseif large > 0 then
    r.cap, r.permits, r.waiting, r.fairs, r.head, r.tail, r.place, r.upgrading, r.lively, r.first, r.final, r.stale,
      r.latest, r.soonest, r.top, r.top_end, rest = read(LARGE, s, rest)
    if large == 2 then
      r.audit, rest = read('>I8', s, rest)
    end
  elseif r.n == 1 then
    r.soonest = read('>I8', s, rest)
    r.top, r.top_end = 1, r.soonest
  end
  cache.h1 = r.n > 0 and string.sub(s, rest)
end

-- Reads many fields in as few calls as possible.
function f.fetch(fields)
  if plain or not r.known then
    return
  end
  for from = 1, #fields, 200 do
    local to = math.min(from + 199, #fields)
    local values = redis.call('HMGET', key, unpack(fields, from, to))
    for at = from, to do
      if cache[fields[at]] == nil then
        cache[fields[at]] = values[at - from + 1]
      end
    end
  end
end

function f.get(field)
  local value = cache[field]
  if value == nil then
    value = r.known and not plain and redis.call('HGET', key, field)
    cache[field] = value
  end
  return value
end

-- Takes false for a field that is to go.
function f.set(field, value)
  if not changed[field] then
    changed[field] = true
    order[#order + 1] = field
  end
  cache[field] = value
end

-- Reads what the operation names together with what settling will look at first.
function f.foresee(fields)
  if r.upgrading == 1 then
    fields[#fields + 1] = 'u'
  end
  if r.waiting > 0 then
    fields[#fields + 1] = name('w%d', r.head)
    fields[#fields + 1] = name('l%d', r.head)
  end
  f.fetch(fields)
end

function f.somebody_waits()
  return r.waiting > 0 or r.upgrading == 1
end
-- Who holds: slots 1 to n without gaps, so that all of them are read in one call.
--
-- keeps    soonest  not later than any lease end: nothing is looked for before it
--          top      the slot that ends last (0: to be found again), and top_end, its end
local HOLD = '>I8BBI4I8I8I8I8'

function f.hold(slot)
  local h = r.holds[slot]
  if not h then
    local raw, rest = f.get(name('h%d', slot)), 0
    h = {slot = slot}
    h.till, h.revoked, h.mode, h.count, h.stamp, h.since, h.not_after, h.length, rest = read(HOLD, raw)
    h.card = string.sub(raw, rest)
    h.id = string.sub(h.card, 1, 24)
    r.holds[slot] = h
  end
  return h
end

function f.save(h)
  local numbers = write(HOLD, h.till, h.revoked, h.mode, h.count, h.stamp, h.since, h.not_after, h.length)
  f.set(name('h%d', h.slot), numbers .. h.card)
end

-- Reads all of them in as few calls as possible.
function f.all()
  local missing = {}
  for slot = 2, r.n do
    if not r.holds[slot] then
      missing[#missing + 1] = name('h%d', slot)
    end
  end
  f.fetch(missing)
end

-- Whether a ends behind b. Not `a.id > b.id`: Lua compares strings by the server's locale.
function f.later(a, b)
  if a.till ~= b.till then
    return a.till > b.till
  end
  for at = 1, 24 do
    local x, y = string.byte(a.id, at), string.byte(b.id, at)
    if x ~= y then
      return x > y
    end
  end
  return false
end

-- Finds the first and the last end anew.
function f.survey()
  f.all()
  r.soonest, r.top, r.top_end = FAR, 0, 0
  for slot = 1, r.n do
    local h = f.hold(slot)
    r.soonest = math.min(r.soonest, h.till)
    if r.top == 0 or f.later(h, f.hold(r.top)) then
      r.top, r.top_end = slot, h.till
    end
  end
end

-- Takes note of a hold's new end.
function f.timed(h)
  r.soonest = math.min(r.soonest, h.till)
  if r.n == 1 then
    r.soonest, r.top, r.top_end = h.till, 1, h.till
  elseif r.top == h.slot then
    -- Ending earlier than before, it may be the last no more.
    r.top, r.top_end = h.till >= r.top_end and h.slot or 0, h.till
  elseif r.top ~= 0 and h.till >= r.top_end and f.later(h, f.hold(r.top)) then
    r.top, r.top_end = h.slot, h.till
  end
end

function f.insert(h)
  local slot = r.n + 1
  h.slot, r.n, r.holds[slot], r.permits = slot, slot, h, r.permits + h.count
  if slot > 1 then
    f.set('i' .. h.id, write('>BI8', 1, slot))
  end
  f.save(h)
  f.timed(h)
end

function f.remove(h)
  local slot, n = h.slot, r.n
  if h.revoked == 1 then
    f.set('r' .. h.id, false)
  end
  if slot > 1 then
    f.set('i' .. h.id, false)
  end
  if r.top == slot then
    r.top = 0
  elseif r.top == n then
    r.top = slot
  end
  if slot ~= n then
    local mover = f.hold(n)
    mover.slot, r.holds[slot] = slot, mover
    f.save(mover)
    f.set('i' .. mover.id, slot > 1 and write('>BI8', 1, slot))
  end
  r.holds[n] = nil
  f.set(name('h%d', n), false)
  h.slot, r.permits, r.n = nil, r.permits - h.count, n - 1
  if n == 1 then
    r.soonest, r.top_end = FAR, 0
  end
end

function f.remaining(h)
  return math.max(0, math.min(h.till - now, h.length))
end

function f.fits(mode, count, of)
  if mode == 0 then
    return r.n == 0
  elseif mode == 1 then
    return r.n == 0 or (f.hold(1).mode ~= 0 and r.n < r.sharers)
  end
  return r.permits + count <= of
end

-- Where an id stands: 1 and its slot, 2 and its place, or nothing.
function f.find(id)
  if r.n > 0 and f.hold(1).id == id then
    return 1, 1
  end
  local at = (r.n > 1 or r.waiting > 0) and f.get('i' .. id)
  if at then
    return read('>BI8', at)
  end
end

function f.holder(id)
  local kind, slot = f.find(id)
  return kind == 1 and f.hold(slot) or nil
end

-- Adds the holder that ends last to a reply, if anybody holds. What is shown leaves out the secret id.
function f.blocker(reply)
  if r.n > 0 and r.top == 0 then
    f.survey()
  end
  if r.n > 0 and r.top_end > now then
    local h = f.hold(r.top)
    reply[#reply + 1] = f.remaining(h)
    reply[#reply + 1] = string.sub(h.card, 25)
    return true
  end
end
-- Ids that have ended but whose claim may still be on its way.
--
-- keeps    marks first to final in the order they were made, empty when first > final; latest, the last time any of
--          them counts; stale, the time that the first of them counts
function f.contains(id)
  local till = r.first <= r.final and f.get('d' .. id)
  return till and read('>I8', till) >= now
end

function f.mark(id, till)
  local old = r.first <= r.final and f.get('d' .. id)
  if till < now or old and till <= read('>I8', old) then
    return
  end
  f.set('d' .. id, write('>I8', till))
  r.latest = math.max(r.latest, till)
  if old then
    return
  end
  r.final = r.final + 1
  f.set(name('m%d', r.final), id)
  if r.first == r.final then
    r.stale = till
  elseif till < r.stale then
    -- The first would keep this one from being forgotten: it goes behind.
    local front = name('m%d', r.first)
    local other = f.get(front)
    f.set(front, false)
    r.first, r.final, r.stale = r.first + 1, r.final + 1, 0
    f.set(name('m%d', r.final), other)
  end
end

function f.forget()
  for _ = 1, r.work do
    if r.first > r.final then
      break
    end
    local front = name('m%d', r.first)
    local id = f.get(front)
    r.stale = read('>I8', f.get('d' .. id))
    if r.stale >= now then
      break
    end
    f.set('d' .. id, false)
    f.set(front, false)
    r.first = r.first + 1
  end
  if r.first > r.final then
    r.first, r.final, r.latest = 1, 0, 0
  end
end
-- Who waits: places are running numbers, and a waiter's neighbours are the places beside its own unless a link says
-- otherwise. So joining and leaving at the ends costs nothing, and leaving in between two links.
--
-- keeps    head, tail (places, while waiting > 0), place (the next), waiting, fairs; lively, not earlier than any
--          live-until, and 0 without any
local WAIT = '>BI4BI8I8I8I8I8'

function f.parse(raw, from)
  local w, rest = {}, 0
  w.mode, w.count, w.fair, w.lease, w.window, w.not_after, w.ballot, w.since, rest = read(WAIT, raw, from)
  w.card, w.of = string.sub(raw, rest), r.cap
  w.id, w.box = string.sub(w.card, 1, 24), string.sub(w.card, 25, 40)
  return w
end

function f.form(c)
  return write(WAIT, c.mode, c.count, c.fair, c.lease, c.window, c.not_after, c.ballot, us) .. c.card
end

function f.waiter(at)
  local w = r.waiters[at]
  if not w then
    w = f.parse(f.get(name('w%d', at)), 1)
    r.waiters[at] = w
  end
  return w
end

function f.links(at)
  local raw = f.get(name('l%d', at))
  if raw then
    return read('>I8I8', raw)
  end
  return at - 1, at + 1
end

function f.link(at, before, behind)
  f.set(name('l%d', at), write('>I8I8', before, behind))
end

-- Until when an inbox is alive, for what length, and how many entries it has.
function f.life(box)
  local raw = f.get('a' .. box)
  if raw then
    return read('>I8I8I4', raw)
  end
  return nil, 0, 0
end

-- Counts one entry more, or none, and lengthens the life of an inbox that has entries; never shortens it.
function f.refresh(box, length, more)
  local till, old, entries = f.life(box)
  entries = entries + more
  if entries == 0 then
    return
  elseif till and till >= now + length then
    length = old
  else
    till = now + length
    r.lively = math.max(r.lively, till)
  end
  f.set('a' .. box, write('>I8I8I4', till, length, entries))
end

function f.delist(box)
  local till, length, entries = f.life(box)
  f.set('a' .. box, entries > 1 and write('>I8I8I4', till, length, entries - 1))
  if not f.somebody_waits() then
    r.lively = 0
  end
end

function f.dead(box)
  local till = f.life(box)
  return not till or till <= now
end

function f.push(c)
  local place = r.place
  if r.waiting == 0 then
    r.head = place
  elseif r.tail ~= place - 1 then
    f.link(r.tail, f.links(r.tail), place)
    f.link(place, r.tail, place + 1)
  end
  f.refresh(c.box, c.alive, 1)
  f.set(name('w%d', place), f.form(c))
  f.set('i' .. c.id, write('>BI8', 2, place))
  r.tail, r.place, r.waiting, r.fairs = place, place + 1, r.waiting + 1, r.fairs + c.fair
end

function f.leave(at, w)
  local before, behind = f.links(at)
  if at == r.head then
    r.head = behind
  elseif at == r.tail then
    r.tail = before
  else
    f.link(before, f.links(before), behind)
    f.link(behind, before, select(2, f.links(behind)))
  end
  if f.get(name('l%d', at)) then
    f.set(name('l%d', at), false)
  end
  f.set(name('w%d', at), false)
  f.set('i' .. w.id, false)
  r.waiting, r.fairs = r.waiting - 1, r.fairs - w.fair
  f.delist(w.box)
end

function f.upgrade()
  if r.upgrading == 1 and not r.pending then
    local raw = f.get('u')
    r.pending = f.parse(raw, 25)
    r.pending.from = string.sub(raw, 1, 24)
  end
  return r.pending
end

function f.take_upgrade()
  local taken = f.upgrade()
  r.upgrading, r.pending = 0, nil
  f.set('u', false)
  f.delist(taken.box)
  return taken
end
-- A clock that stepped back must not lengthen anything: whatever ends later than its own length from now is cut.
-- Looks at everything, but only then. Afterwards marks that are over are forgotten, and the audit, as at the start of
-- every call.
if now < r.seen then
  f.all()
  for slot = 1, r.n do
    local h = f.hold(slot)
    if h.till > now + h.length then
      h.till = now + h.length
      f.save(h)
    end
  end
  f.survey()
  local boxes = {}
  for _, field in ipairs(plain and {} or redis.call('HKEYS', key)) do
    if string.sub(field, 1, 1) == 'a' then
      boxes[#boxes + 1] = field
    end
  end
  f.fetch(boxes)
  r.lively = 0
  for _, field in ipairs(boxes) do
    local till, length, entries = read('>I8I8I4', f.get(field))
    till = math.min(till, now + length)
    f.set(field, write('>I8I8I4', till, length, entries))
    r.lively = math.max(r.lively, till)
  end
  -- Marks that were over before the step stay over.
  local kept = {}
  for at = r.first, r.final do
    local id = f.get(name('m%d', at))
    f.set(name('m%d', at), false)
    if read('>I8', f.get('d' .. id)) < r.seen then
      f.set('d' .. id, false)
    else
      kept[#kept + 1] = id
      f.set(name('m%d', #kept), id)
    end
  end
  r.first, r.final, r.stale = 1, #kept, 0
  r.latest = #kept > 0 and r.latest or 0
  if r.audit > 0 then
    r.audit = math.min(r.audit, now + read('>I8', f.get('v')))
  end
end
if r.first <= r.final and r.stale < now then
  f.forget()
end
if r.audit > 0 and r.audit <= now then
  f.set('v', false)
  r.audit = 0
end
-- What time and departures bring about: expired holders leave, and the head of the queue becomes the holder.
-- At most `work` entries per call; what is left over is `more`.
r.budget, r.more, r.notice, r.over, r.nth = r.work, false, false, {}, 1
local news = {}

function f.end_hold(h)
  f.remove(h)
  f.mark(h.id, h.not_after)
end

-- Ends a named hold that is over, so that no operation finds one alive that the bound left for later.
function f.end_if_over(id)
  local h = r.soonest <= now and f.holder(id)
  if h and h.till <= now then
    f.end_hold(h)
  end
end

-- The first of the holds whose end has come. They leave in the order of their ends.
function f.expired()
  while r.over[r.nth] and not r.over[r.nth].slot do
    r.nth = r.nth + 1
  end
  if r.over[r.nth] or r.n == 0 or r.soonest > now then
    return r.over[r.nth]
  end
  f.survey()
  r.over, r.nth, r.soonest = {}, 1, FAR
  for slot = 1, r.n do
    local h = f.hold(slot)
    if h.till <= now then
      r.over[#r.over + 1] = h
    else
      r.soonest = math.min(r.soonest, h.till)
    end
  end
  table.sort(r.over, function(a, b) return f.later(b, a) end)
  return r.over[1]
end

-- Takes note of a claim that enters.
function f.admit(c)
  r.cap, r.late = c.of, math.max(r.late, c.not_after)
end

-- Makes a claim a holder with a stamp above all before.
function f.grant(c, length)
  r.last = math.min(math.max(r.last + 1, us, c.ballot), FAR - 1)
  f.admit(c)
  local h = {id = c.id, till = now + length, revoked = 0, mode = c.mode, count = c.count, stamp = r.last, since = us,
    not_after = c.not_after, length = length, card = c.card}
  f.insert(h)
  return h
end

function f.grant_unclaimed(c, at_least)
  f.grant(c, math.max(math.min(c.window, c.lease), at_least))
  news[#news + 1] = c.box
  news[#news + 1] = 'G' .. string.sub(c.id, 17) .. write('>I8', r.last)
end

-- Whether the pending upgrade can be exchanged or must go; does it if there is budget.
function f.settle_upgrade()
  local p = f.upgrade()
  local reader = f.holder(p.from)
  local lapsed = f.dead(p.box) or not reader or reader.revoked == 1
  if not lapsed and r.n > 1 then
    return false
  elseif r.budget > 0 then
    f.take_upgrade()
    if lapsed then
      f.mark(p.id, p.not_after)
    else
      local left = f.remaining(reader)
      f.end_hold(reader)
      f.grant_unclaimed(p, left)
    end
  end
  return true
end

-- The same for the head of the queue.
function f.settle_head()
  local at, w = r.head, f.waiter(r.head)
  local lapsed = f.dead(w.box)
  if not lapsed and not f.fits(w.mode, w.count, w.of) then
    return false
  elseif r.budget > 0 then
    f.leave(at, w)
    if lapsed then
      f.mark(w.id, w.not_after)
    else
      f.grant_unclaimed(w, 0)
    end
  end
  return true
end

-- Does one unit of work that is due, if there is budget; false when nothing is due.
function f.advance()
  local h = f.expired()
  if h then
    if r.budget > 0 then
      f.end_hold(h)
    end
    return true
  elseif r.upgrading == 1 then
    return f.settle_upgrade()
  end
  return r.waiting > 0 and f.settle_head()
end

function f.settle()
  while f.advance() do
    if r.budget == 0 then
      r.more = true
      return
    end
    r.budget = r.budget - 1
  end
  r.more = false
end
-- How claims enter, and the words of a verdict:
--   1 stamp remaining waiters fair   granted
--   2 last ahead [remaining card]    queued, with the holder that ends last
--   3 [remaining card]               busy, with the holder or the next in line
--   4 code …                         refused: 1 done, 2 late, 3 lease too long, 4 wrong kind (capacity there is),
--                                    5 queue full, 6 not holder, 7 revoked (reason), 8 upgrade pending,
--                                    9 overtaken (last stamp); behind 6 the audit, if there is one
-- A card in a reply begins behind the secret id.
function f.granted(h)
  return {1, h.stamp, f.remaining(h), r.waiting + r.upgrading, r.fairs > 0 and 1 or 0}
end

function f.queued(ahead)
  local reply = {2, r.last, ahead}
  f.blocker(reply)
  return reply
end

-- Adds the audit (see audit.lua) to the answer to one who does not hold, if there is one. Its client finds there whether
-- it was revoked, by its public id: the script knows the secret one only, and that is not kept for longer than it serves.
function f.ended(reply)
  reply[#reply + 1] = r.audit > 0 and f.get('v') or nil
  return reply
end

-- How an id that holds or waits stands, or nothing; the second value says that it waits.
function f.standing(id)
  local kind, at = f.find(id)
  if kind == 1 then
    return f.granted(f.hold(at))
  elseif r.upgrading == 1 and f.upgrade().id == id then
    return f.queued(0), true
  elseif kind == 2 then
    return f.queued(math.min(at - r.head, r.waiting - 1) + r.upgrading), true
  end
end
-- Writes back what changed, lets the key live as long as the record matters, and pushes the news last.
-- cost     PEXPIREAT and SET for numbers alone, else PEXPIREAT, at most one HDEL and one HSET per 500 fields, with DEL
--          (and SETRANGE for a new claim) where it was numbers alone; one PUBLISH per piece of news

-- Tells every holder's inbox, each once, that somebody waits.
function f.notify()
  f.all()
  local told = {}
  for slot = 1, r.n do
    local box = string.sub(f.hold(slot).card, 25, 40)
    if not told[box] then
      told[box] = true
      news[#news + 1] = box
      news[#news + 1] = r.fairs > 0 and 'W1' or 'W0'
    end
  end
end

function f.send(command, list)
  for from = 1, #list, 1000 do
    redis.call(command, key, unpack(list, from, math.min(from + 999, #list)))
  end
end

-- Every number of the record, and the hold in slot 1; and whether that is all there is.
function f.summary(waits, ends)
  -- Without these, one number tells all.
  local large = r.n > 1 or waits or r.first <= r.final or (r.n == 1 and r.cap > 0)
  large = r.audit > 0 and 2 or large and 1 or 0
  local summary = write(SMALL, r.last, now, ends, r.late, r.n, large)
  if large > 0 then
    summary = summary .. write(LARGE, r.cap, r.permits, r.waiting, r.fairs, r.head, r.tail, r.place, r.upgrading,
      r.lively, r.first, r.final, r.stale, r.latest, r.soonest, r.top, r.top_end)
  end
  if large == 2 then
    summary = summary .. write('>I8', r.audit)
  end
  if r.n == 0 then
    return summary, large == 0
  end
  -- A hold that is revoked has a reason.
  return summary .. f.get('h1'), large == 0 and string.byte(f.get('h1'), 9) == 0
end

function f.flush(waits, ends)
  local summary, small = f.summary(waits, ends)
  ends = string.format('%d', ends)
  -- Without memory only a call that has already written may write more: all but a new claim write the end first, also
  -- where there is no key yet.
  if not r.grows then
    redis.call('PEXPIREAT', key, ends)
  end
  if small then
    redis.call('SET', key, summary, 'PXAT', ends)
    return
  end
  local kept, gone = {'s', summary}, {}
  for _, field in ipairs(order) do
    local value = cache[field]
    if value and field ~= 'h1' then
      kept[#kept + 1] = field
      kept[#kept + 1] = value
    elseif field ~= 'h1' then
      gone[#gone + 1] = field
    end
  end
  local fresh = plain or not r.known
  if plain and r.grows then
    -- Writes nothing, but is refused without memory, before anything has gone.
    redis.call('SETRANGE', key, '0', '')
  end
  if s and fresh then
    redis.call('DEL', key)
  end
  f.send('HSET', kept)
  if fresh or r.grows then
    redis.call('PEXPIREAT', key, ends)
  end
  if not fresh then
    f.send('HDEL', gone)
  end
end

-- Ends the call: the hand-off that the operation made possible, then everything is written, then told.
function f.finish(reply)
  f.settle()
  local waits = f.somebody_waits()
  if r.notice and waits then
    f.notify()
  end
  local left = r.more and f.expired()
  if left then
    r.soonest = math.min(r.soonest, left.till)
  end
  if r.n > 0 and r.top == 0 then
    f.survey()
  end
  if r.waiting == 0 then
    r.head, r.tail, r.place = 0, 0, 1
  end
  if r.n == 0 and not waits then
    r.late, r.cap = 0, 0
  end
  if r.last > 0 or r.n > 0 or waits or r.first <= r.final then
    -- Every time in the record that a later operation could still depend on, plus the retention; the audit as it is.
    local ahead = math.max(0, math.ceil((r.last - us) / 1000))
    local ends = math.max(now + ahead, r.late, r.latest, r.top_end, r.lively)
    f.flush(waits, math.max(ends + r.retention, r.audit))
  elseif s then
    redis.call('DEL', key)
  end
  for at = 1, #news, 2 do
    -- A refused publish must not undo what is written.
    redis.pcall('PUBLISH', string.sub(ARGV[1], r.rest) .. news[at], news[at + 1] .. key)
  end
  return {now, r.more and 1 or 0, unpack(reply)}
end
-- The audit: the last revocations, oldest first, in the field v: for how long they are kept, then each behind its size.
--
-- each     stamp, when (wall clock), whether at once, the size of the reason, the reason, the size of the card that
--          follows, that (public id and who held), who asked
-- keeps    audit    the time until which they are kept, 0 without any
--
-- A record with an audit is left to the engine: its summary is of the sort 2, which no fast path takes (join.lua reads no
-- soonest from it, so that it seems to be over).
function f.revocations()
  local list, v, at = {}, r.audit > now and f.get('v') or '', 9
  while at <= #v do
    local size = read('>I4', v, at)
    list[#list + 1] = string.sub(v, at + 4, at + 3 + size)
    at = at + 4 + size
  end
  return list
end
-- What claims and upgrades have in common.

-- Reads a claim from its numbers, in the order of acquire_head.lua, and its card.
function f.claim(at, card)
  local c = {card = card, id = string.sub(card, 1, 24), box = string.sub(card, 25, 40)}
  c.mode, c.lease, c.not_after, c.ballot, c.count, c.of, c.window, c.alive, c.fair, c.try, r.rest =
    read('>BI8I8I8I4I4I8I8BB', ARGV[1], at)
  if c.mode > 2 then
    c.mode = c.mode - 3
    c.after, r.rest = read('>I8', ARGV[1], r.rest)
  end
  return c
end

-- The answer to a claim whose id is known or that cannot be served at all.
function f.settled(c)
  local reply, waits = f.standing(c.id)
  if reply then
    if waits then
      f.refresh(c.box, c.alive, 0)
    end
    return reply
  elseif f.contains(c.id) then
    return {4, 1}
  elseif c.not_after < now then
    return {4, 2}
  elseif c.lease > r.longest then
    return {4, 3}
  elseif (r.n > 0 or f.somebody_waits()) and r.cap ~= c.of then
    return {4, 4, r.cap}
  end
  -- A record whose key should have gone vouches for nothing.
  local last = r.known and r.last or 0
  if c.after and c.after ~= last then
    return {4, 9, last}
  end
  -- Nobody escapes a revocation by coming back.
  local list = c.after and f.revocations() or {}
  for at = #list, 1, -1 do
    local stamp, _, _, size, reason = read('>I8I8BI4', list[at])
    if stamp == c.after then
      return {4, 7, string.sub(list[at], reason, reason + size - 1)}
    end
  end
end

function f.busy()
  local reply = {3}
  if not f.blocker(reply) and f.somebody_waits() then
    reply[2], reply[3] = 0, string.sub((f.upgrade() or f.waiter(r.head)).card, 25)
  end
  return reply
end

-- The second value says that the claim is new here.
function f.acquire(c)
  local reply = f.settled(c)
  if reply then
    return reply
  elseif not r.more and not f.somebody_waits() and f.fits(c.mode, c.count, c.of) then
    return f.granted(f.grant(c, c.lease)), true
  elseif c.try == 1 then
    return f.busy()
  elseif r.waiting >= r.room then
    return {4, 5}
  end
  local ahead = r.waiting + r.upgrading
  r.notice = r.notice or ahead == 0 or (c.fair == 1 and r.fairs == 0)
  f.admit(c)
  f.push(c)
  return f.queued(ahead), true
end
-- Acquire, when the fast path does not fit. See acquire_head.lua.
local c = f.claim(29, ARGV[2])
f.foresee({'i' .. c.id, 'd' .. c.id, 'a' .. c.box})
f.end_if_over(c.id)
f.settle()
local reply
reply, r.grows = f.acquire(c)
return f.finish(reply)
