-- The clock of a call.
--
-- Leases are counted in milliseconds (now), stamps in microseconds (us). Both stay below 2^53, so they are exact.
-- cost     1 redis.call (TIME)
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = (us - us % 1000) / 1000
