-- Acquire: what is asked.
--
-- ARGV[1]  then the claim: mode, lease, not-after, ballot, count, capacity, window, live-until, fair, try;
--          with 3 added to the mode, so that no fast path takes it, a claim goes on with the stamp it is to follow
-- ARGV[2]  its card: holder id (16 secret bytes, 8 of sequence), inbox (16 hex digits), public id (8 bytes), who
local retention, longest, mode, lease, not_after, ballot = struct.unpack('>I8I8BI8I8I8', ARGV[1], 14)
local card, record, ends, stamp = ARGV[2]
local front, packed_stamp, packed_late, packed_lease
