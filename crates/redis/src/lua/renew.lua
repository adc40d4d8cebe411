-- Renew, when the fast path does not fit. See renew_head.lua.
foresee({'i' .. ARGV[3]})
end_if_over(ARGV[3])
settle()
local h = holder(ARGV[3])
if not h then
  return finish({0})
elseif h.revoked == 1 then
  return finish({2, get('r' .. h.id), remaining(h)})
end
h.till, h.length = now + left, left
save(h)
timed(h)
return finish(granted(h))
