-- The head of operations that have no fast path.
--
-- ARGV[1]  limits, then the operation's own numbers, from position `rest`
local retention, longest, room, sharers, work, rest = struct.unpack('>I8I8I4I4I4', ARGV[1])
local grows = false
