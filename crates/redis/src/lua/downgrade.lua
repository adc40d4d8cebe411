-- Downgrade: an exclusive hold becomes shared, or a pending upgrade is withdrawn.
--
-- ARGV[2]  the holder id
-- returns  at, more, then 1 stamp remaining waiters fair (shared) | 2 (withdrawn) | 0 [audit] (not holder)
local id = ARGV[2]
r.rest = 30
f.foresee({'i' .. id})
f.end_if_over(id)
f.settle()
if r.upgrading == 1 and f.upgrade().id == id then
  f.mark(id, f.take_upgrade().not_after)
  return f.finish({2})
end
local h = f.holder(id)
if not h then
  return f.finish(f.ended({0}))
elseif h.mode == 2 then
  return f.finish({0})
end
h.mode = 1
f.save(h)
return f.finish(f.granted(h))
