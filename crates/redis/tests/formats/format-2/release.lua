-- Release, when the fast path does not fit. See release_head.lua.
local id, fields = ARGV[2], {'i' .. ARGV[2]}
local c = again == 1 and f.claim(55, ARGV[3])
r.rest, r.echo = r.rest or 55, string.byte(ARGV[1], 39) ~= 0 and string.sub(ARGV[1], 39, 54)
if c then
  fields = {'i' .. id, 'i' .. c.id, 'd' .. c.id, 'a' .. c.box}
end
f.foresee(fields)
if c then
  f.end_if_over(c.id)
end
f.end_if_over(id)
f.settle()
local kind, at = f.find(id)
local parted = 0
if kind == 1 then
  f.remove(f.hold(at))
  parted = 1
elseif kind == 2 then
  f.leave(at, f.waiter(at))
  parted = 2
elseif r.upgrading == 1 and f.upgrade().id == id then
  f.take_upgrade()
  parted = 2
end
if named == 1 then
  f.mark(id, not_after)
end
local reply = {parted}
if c then
  -- The hand-off comes first: whoever waited stands before the one who comes back.
  f.settle()
  reply[2] = f.acquire(c)
end
return f.finish(parted == 0 and f.ended(reply) or reply)
