-- Release, when the fast path does not fit. See release_head.lua.
local id, again_id = ARGV[3], ARGV[4]
local c = again == 1 and claim(rest, again_id, ARGV[5])
foresee(c and {'i' .. id, 'i' .. c.id, 'd' .. c.id, 'a' .. inbox(c)} or {'i' .. id})
if c then
  end_if_over(c.id)
end
end_if_over(id)
settle()
local kind, at = find(id)
local parted = 0
if kind == 1 then
  remove(hold(at))
  parted = 1
elseif kind == 2 then
  leave(at, waiter(at))
  parted = 2
elseif upgrading == 1 and upgrade().id == id then
  take_upgrade()
  parted = 2
end
if named == 1 then
  mark(id, not_after)
end
if not c then
  return finish({parted})
end
-- The hand-off comes first: whoever waited stands before the one who comes back.
settle()
return finish({parted, acquire(c)})
