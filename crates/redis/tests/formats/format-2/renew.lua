-- Renew, when the fast path does not fit. See renew_head.lua.
r.rest = 37
f.foresee({'i' .. ARGV[2]})
f.end_if_over(ARGV[2])
f.settle()
local h = f.holder(ARGV[2])
if not h then
  return f.finish(f.ended({0}))
elseif h.revoked == 1 then
  return f.finish({2, f.get('r' .. h.id), f.remaining(h)})
end
h.till, h.length = now + left, left
f.save(h)
f.timed(h)
return f.finish(f.granted(h))
