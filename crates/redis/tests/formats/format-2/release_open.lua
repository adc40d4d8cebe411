-- Release: what is asked.
--
-- ARGV[1]  then: whether a not-after is named, the not-after, whether a claim follows, the channel of the connection that
--          asks (its last 16 bytes; zeros for none), that claim as for acquire
-- ARGV[2]  the holder id to end
-- ARGV[3]  with a claim: its card
local retention, longest, named, not_after, again = struct.unpack('>I8I8BI8B', ARGV[1], 13)
local id, record, ends = ARGV[2]
local rest, rest_end
