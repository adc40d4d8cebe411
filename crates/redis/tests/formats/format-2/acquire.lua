-- Acquire, when the fast path does not fit. See acquire_head.lua.
local c = f.claim(29, ARGV[2])
f.foresee({'i' .. c.id, 'd' .. c.id, 'a' .. c.box})
f.end_if_over(c.id)
f.settle()
local reply
reply, r.grows = f.acquire(c)
return f.finish(reply)
