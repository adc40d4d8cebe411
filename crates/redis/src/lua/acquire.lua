-- Acquire, when the fast path does not fit. See acquire_head.lua.
local c = claim(29, ARGV[3], ARGV[4])
foresee({'i' .. c.id, 'd' .. c.id, 'a' .. inbox(c)})
end_if_over(c.id)
settle()
return finish(acquire(c))
