-- Renew, second fast path: the only hold, exclusive and not revoked, with a line behind it or marks to keep.
--
-- cost     8 redis.calls in all (TIME, MGET, HGET, HGET twice for the line, PEXPIREAT, HSET, PUBLISH)
if s and string.byte(s, 37) == 1 and string.sub(s, 185, 208) == ARGV[2] then
  local last, seen, expires, late, n, _, cap, permits, waiting, fairs, head, tail, place, upgrading, lively, first,
    final, stale, latest = struct.unpack('>I8I8I8I8I4BI4I4I4I4I8I8I8BI8I8I8I8I8', s)
  local till, revoked, mode, count, own, since, not_after = struct.unpack('>I8BBI4I8I8I8', s, 139)
  if n == 1 and cap == 0 and mode == 0 and upgrading == 0 and expires > now and seen <= now and till > now
    and revoked == 0 and (first > final or stale >= now) and (waiting > 0 or first <= final) then
    local w = waiting > 0 and redis.call('HGET', key, string.format('w%d', head))
    local life = w and redis.call('HGET', key, 'a' .. string.sub(w, 71, 86))
    if waiting == 0 or life and (struct.unpack('>I8', life)) > now then
      till = now + left
      expires = math.max(till, late, latest, lively, now + math.ceil((last - us) / 1000)) + retention
      redis.call('PEXPIREAT', key, string.format('%d', expires))
      redis.call('HSET', key, 's', struct.pack('>I8I8I8I8I4BI4I4I4I4I8I8I8BI8I8I8I8I8I8I4I8I8BBI4I8I8I8I8c0', last, now,
        expires, late, 1, 1, 0, permits, waiting, fairs, head, tail, place, 0, lively, first, final, stale, latest,
        till, 1, till, till, 0, 0, count, own, since, not_after, left, string.sub(s, 185)))
      -- No news, but whoever is next is awake for what may come soon.
      if w then
        redis.pcall('PUBLISH', string.sub(ARGV[1], 37) .. string.sub(w, 71, 86), '')
      end
      return {now, 0, 1, own, left, waiting, fairs > 0 and 1 or 0}
    end
  end
end
