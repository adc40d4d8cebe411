-- The fast path of a renewal: the only hold, not revoked, with nobody waiting and nothing remembered.
--
-- ARGV[1]  then the lease
-- returns  the stamp: renewed for the whole lease. Nothing, and nothing is written, where it does not fit
-- cost     2 redis.calls (PEXPIREAT, HSET)
local retention, longest, left = struct.unpack('>I8I8I8', ARGV[1], 13)
if left > longest then
  left = longest
end
local function renew(key, s, id)
  local last, seen, expires, late, n, large = struct.unpack('>I8I8I8I8I4B', s)
  if n ~= 1 or large ~= 0 or expires <= now or seen > now or string.sub(s, 84, 107) ~= id then
    return
  end
  local till, revoked, mode, count, stamp, since, not_after = struct.unpack('>I8BBI4I8I8I8', s, 38)
  if till <= now or revoked ~= 0 then
    return
  end
  till = now + left
  expires = math.max(till, late, now + math.ceil((last - us) / 1000)) + retention
  redis.call('PEXPIREAT', key, string.format('%d', expires))
  redis.call('HSET', key, 's', struct.pack('>I8I8I8I8I4BI8BBI4I8I8I8I8', last, now, expires, late, 1, 0,
    till, 0, mode, count, stamp, since, not_after, left) .. string.sub(s, 84))
  return stamp
end
