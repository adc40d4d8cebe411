-- Acquire, fast path: an exclusive claim for a lock that nobody holds or waits for, and that remembers no done ids.
--
-- numbers, from  ARGV[1] and where its retention stands; card  ARGV[2] (alone.lua; in a bundle a function's arguments)
-- ARGV[1]  then the claim: mode, lease, not-after, ballot, count, capacity, window, live-until, fair, try;
--          with 3 added to the mode, so that no fast path takes it, a claim goes on with the stamp it is to follow
-- ARGV[2]  its card: holder id (16 secret bytes, 8 of sequence), inbox (16 hex digits), public id (8 bytes), who
-- returns  at and stamp, packed: granted for the whole lease, nobody waits. Else at, more, the verdict (see enter.lua)
-- cost     4 redis.calls in all (TIME, MGET, SET, PEXPIREAT), 5 when there is no record (HGET and EXISTS, one SET)
local retention, longest, mode, lease, not_after, ballot = struct.unpack('>I8I8BI8I8I8', numbers, from)
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
      till, 0, 0, 0, stamp, us, not_after, lease, card)
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
