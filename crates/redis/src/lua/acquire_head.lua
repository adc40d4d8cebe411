-- Acquire, fast path: an exclusive claim for a lock that nobody holds or waits for, and that remembers no done ids.
--
-- ARGV[1]  limits, then the claim: mode, count, capacity, lease, window, live-until, fair, try, not-after, ballot
-- ARGV[3]  the holder id: 16 secret bytes, 8 of sequence
-- ARGV[4]  inbox (16 hex digits), public id (8 bytes), who: stored and given back as it is
-- returns  at, more, then the verdict (see enter.lua)
-- cost     4 redis.calls in all (TIME, HMGET, HSET, PEXPIREAT)
local retention, longest, room, sharers, work, mode, count, of, lease, window, alive, fair, try, not_after, ballot =
  struct.unpack('>I8I8I4I4I4BI4I4I8I8I8BBI8I8', ARGV[1])
if mode == 0 and not opened[2] and lease <= longest and not_after >= now then
  local last, seen, expires, late, n = 0, 0, now + 1, 0, 0
  if opened[1] then
    last, seen, expires, late, n = struct.unpack('>I8I8I8I8I4', opened[1])
  end
  if n == 0 and expires > now then
    local stamp = math.min(math.max(last + 1, us, ballot), 4503599627370495)
    local till = now + lease
    expires = math.max(till, not_after, now + math.ceil((stamp - us) / 1000)) + retention
    redis.call('HSET', key, 's', struct.pack('>I8I8I8I8I4', stamp, now, expires, not_after, 1), 'h1',
      struct.pack('>c24I8BBI4I8I8I8I8', ARGV[3], till, 0, 0, 0, stamp, us, not_after, lease) .. ARGV[4])
    redis.call('PEXPIREAT', key, expires)
    return {now, 0, 1, stamp, lease, 0, 0}
  end
end
local grows = true
