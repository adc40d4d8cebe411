-- Renew, fast path: the only hold, not revoked, with nobody waiting and nothing remembered.
--
-- ARGV[1]  then the lease
-- ARGV[2]  the holder id
-- returns  at and stamp, packed: renewed for the whole lease, nobody waits. Else at, more, then
--          1 stamp remaining waiters fair (renewed) | 2 reason remaining (revoked) | 0 [audit] (not holder)
-- cost     4 redis.calls in all (TIME, HGET, PEXPIREAT, HSET)
local retention, longest, left = struct.unpack('>I8I8I8', ARGV[1], 13)
if left > longest then
  left = longest
end
if s then
  local last, seen, expires, late, n, large = struct.unpack('>I8I8I8I8I4B', s)
  if n == 1 and large == 0 and expires > now and seen <= now and string.sub(s, 84, 107) == ARGV[2] then
    local till, revoked, mode, count, stamp, since, not_after = struct.unpack('>I8BBI4I8I8I8', s, 38)
    if till > now and revoked == 0 then
      till = now + left
      expires = math.max(till, late, now + math.ceil((last - us) / 1000)) + retention
      redis.call('PEXPIREAT', key, string.format('%d', expires))
      redis.call('HSET', key, 's', struct.pack('>I8I8I8I8I4BI8BBI4I8I8I8I8', last, now, expires, late, 1, 0,
        till, 0, mode, count, stamp, since, not_after, left) .. string.sub(s, 84))
      return struct.pack('>I8I8', now, stamp)
    end
  end
end
