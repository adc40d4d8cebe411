-- The fast path of a renewal: the only hold, not revoked, with nobody waiting and nothing remembered.
--
-- Most of its time goes into strings, each of which Lua hashes byte by byte, and into calls that write: of the record it
-- writes only what changes, and of one that is renewed among many, again and again, nothing but the key's end.
--
-- ARGV[1]  then the lease
-- started  when the lease was last started, as the holder knows; nothing where it is renewed by itself
-- returns  the stamp: renewed for the whole lease. Nothing, and nothing is written, where it does not fit
-- cost     2 redis.calls (PEXPIREAT, SETRANGE), 3 for another lease than before, 1 where the key knows the end
local form, retention, longest, left = struct.unpack('>BI8I8I8', ARGV[1], 13)
if left > longest then
  left = longest
end
local usual = now + left + retention
local usually = string.format('%d', usual)
local function renew(key, s, id, started)
  if string.byte(s) ~= form or string.find(s, id, 84, true) ~= 84 then
    return
  end
  if string.byte(s, 37) == 3 then
    -- What the key's end says of the lease need not be asked for: its holder has not let it end. Since it was written the
    -- key's end goes with the lease's alone, and by one retention, or the end of a lease would be read wrongly.
    local seen, expires = struct.unpack('>I8I8', s, 9)
    local stamp, _, _, length = struct.unpack('>I8I8I8I8', s, 52)
    if now < seen or now < started or started + left <= now or length ~= left
      or expires - seen ~= length + retention then
      return
    end
    redis.call('PEXPIREAT', key, usually)
    return stamp
  end
  local last, _, expires, late, _, _, till, _, _, _, stamp, _, _, length =
    struct.unpack('>xI7I8I8I8I4BI8BBI4I8I8I8I8', s)
  if expires <= now or till <= now then
    return
  end
  expires = math.max(now + left, late, now + math.ceil((last - us) / 1000)) + retention
  local form = started and started <= now and expires == usual and 3 or 0
  redis.call('PEXPIREAT', key, expires == usual and usually or string.format('%d', expires))
  redis.call('SETRANGE', key, '8', struct.pack('>I8I8I8I4BI8', now, expires, late, 1, form, now + left))
  if length ~= left then
    redis.call('SETRANGE', key, '75', struct.pack('>I8', left))
  end
  return stamp
end
