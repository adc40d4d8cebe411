-- Downgrade: an exclusive hold becomes shared, or a pending upgrade is withdrawn.
--
-- ARGV[3]  the holder id
-- returns  at, more, then 1 stamp remaining waiters fair (shared) | 2 (withdrawn) | 0 (not holder)
local id = ARGV[3]
foresee({'i' .. id})
end_if_over(id)
settle()
if upgrading == 1 and upgrade().id == id then
  mark(id, take_upgrade().not_after)
  return finish({2})
end
local h = holder(id)
if not h or h.mode == 2 then
  return finish({0})
end
h.mode = 1
save(h)
return finish(granted(h))
