-- Revoke: asks a holder to give up, or ends its hold at once. Looks at all holders.
--
-- ARGV[1]  then: whether the target is a stamp, whether to end it at once, the stamp, for how long to remember it
-- ARGV[2]  the public id (8 bytes) if the target is a holder
-- ARGV[3]  the reason
-- ARGV[4]  who asks, as in a card
-- returns  at, more, then 1 remaining (asked) | 2 (ended) | 0 (no such holder)
local by_stamp, at_once, stamp, length, h
by_stamp, at_once, stamp, length, r.rest = read('>BBI8I8', ARGV[1], 29)
f.foresee({})
f.settle()
f.all()
for slot = 1, r.n do
  local other = f.hold(slot)
  local hit = by_stamp == 1 and other.stamp == stamp or by_stamp == 0 and string.sub(other.card, 41, 48) == ARGV[2]
  if hit and other.till > now then
    h = other
  end
end
if not h then
  return f.finish({0})
end
h.revoked = 1
f.save(h)
f.set('r' .. h.id, ARGV[3])
local list, card, v = f.revocations(), string.sub(h.card, 41), write('>I8', length)
list[#list + 1] = write('>I8I8BI4', h.stamp, us, at_once, #ARGV[3]) .. ARGV[3] .. write('>I4', #card) .. card .. ARGV[4]
for at = math.max(1, #list - 7), #list do
  v = v .. write('>I4', #list[at]) .. list[at]
end
f.set('v', v)
r.audit = now + length
news[#news + 1] = string.sub(h.card, 25, 40)
news[#news + 1] = 'R' .. string.sub(h.id, 17) .. write('>I4', #ARGV[3]) .. ARGV[3]
if at_once == 1 then
  f.end_hold(h)
  return f.finish({2})
end
return f.finish({1, f.remaining(h)})
