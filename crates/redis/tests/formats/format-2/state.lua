-- The record in memory: its numbers (r), and a cache of its fields that is written back once, at the end.
--
-- fields   s   last seen expires late n; whether more numbers follow (2: and the audit; 3: none, and the key
--              knows the end, as open.lua says), and those; the hold in slot 1
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
