-- Opens every call: the clock, and the one field that every script looks at.
--
-- KEYS[1]  the lock's key: one hash, and nothing else is touched
-- ARGV[1]  numbers, packed: waiters, sharers, work, retention, longest lease, then the operation's own from byte 29,
--          then what an inbox's channel begins with
-- returns  the error WRONGTYPE for a hash that is not ours
-- cost     2 redis.calls (TIME, HGET), and EXISTS when there is no record
--
-- Leases are counted in milliseconds (now), stamps in microseconds (us). Both stay below 2^53, so they are exact.
local key = KEYS[1]
local clock = redis.call('TIME')
local us = clock[1] * 1000000 + clock[2]
local now = (us - us % 1000) / 1000
local s = redis.call('HGET', key, 's')
if not s and redis.call('EXISTS', key) == 1 then
  return redis.error_reply('WRONGTYPE the hash at this key is not a lock')
end
