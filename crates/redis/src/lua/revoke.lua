-- Revoke: asks a holder to give up, or ends its hold at once. Looks at all holders.
--
-- ARGV[1]  limits, then: whether the target is a stamp, whether to end it at once, the stamp
-- ARGV[3]  the public id (8 bytes) if the target is a holder
-- ARGV[4]  the reason
-- returns  at, more, then 1 remaining (asked) | 2 (ended) | 0 (no such holder)
local by_stamp, at_once, stamp = read('>BBI8', ARGV[1], rest)
foresee({})
settle()
all()
local function named()
  for slot = 1, n do
    local h = hold(slot)
    local hit = by_stamp == 1 and h.stamp == stamp or by_stamp == 0 and string.sub(h.static, 17, 24) == ARGV[3]
    if hit and h.till > now then
      return h
    end
  end
end
local h = named()
if not h then
  return finish({0})
end
h.revoked = 1
save(h)
set('r' .. h.id, ARGV[4])
set('v', string.sub(h.static, 17, 24) .. write('>I8I8B', h.stamp, us, at_once) .. ARGV[4])
news[#news + 1] = {inbox(h), 'R' .. string.sub(h.id, 17) .. write('>I4', #ARGV[4]) .. ARGV[4]}
if at_once == 1 then
  end_hold(h)
  return finish({2})
end
return finish({1, remaining(h)})
