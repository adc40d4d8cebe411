-- Acquire, when the fast path does not fit. See acquire_head.lua.
r.grows = true
local c = f.claim(29, ARGV[2])
f.foresee({'i' .. c.id, 'd' .. c.id, 'a' .. c.box})
f.end_if_over(c.id)
f.settle()
return f.finish(f.acquire(c))
