-- What claim_fast.lua keeps from one claim for the next.
local front, packed_stamp, packed_late, packed_lease
