-- Reads a claim's numbers from ARGV[1]; the same order as in acquire_head.lua.
local function claim(at, id, static)
  local c = {id = id, static = static}
  c.mode, c.count, c.of, c.lease, c.window, c.alive, c.fair, c.try, c.not_after, c.ballot =
    read('>BI4I4I8I8I8BBI8I8', ARGV[1], at)
  return c
end
