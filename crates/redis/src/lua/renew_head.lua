-- Renew, fast path: the only hold, not revoked, with nobody waiting and nothing remembered.
--
-- ARGV[1]  limits, then the lease
-- ARGV[3]  the holder id
-- returns  at, more, then 1 stamp remaining waiters fair (renewed) | 2 reason remaining (revoked) | 0 (not holder)
-- cost     4 redis.calls in all (TIME, HMGET, PEXPIREAT, HSET)
local retention, longest, room, sharers, work, lease = struct.unpack('>I8I8I4I4I4I8', ARGV[1])
local left = math.min(lease, longest)
if opened[1] and not opened[2] then
  local last, seen, expires, late, n = struct.unpack('>I8I8I8I8I4', opened[1])
  if n == 1 and expires > now and seen <= now then
    local raw = opened[3]
    local holder, till, revoked, mode, count, stamp = struct.unpack('>c24I8BBI4I8', raw)
    if holder == ARGV[3] and till > now and revoked == 0 then
      expires = math.max(now + left, late, now + math.ceil((last - us) / 1000)) + retention
      redis.call('PEXPIREAT', key, expires)
      redis.call('HSET', key, 's', struct.pack('>I8I8I8I8I4', last, now, expires, late, 1), 'h1', holder ..
        struct.pack('>I8', now + left) .. string.sub(raw, 33, 62) .. struct.pack('>I8', left) .. string.sub(raw, 71))
      return {now, 0, 1, stamp, left, 0, 0}
    end
  end
end
local grows = false
