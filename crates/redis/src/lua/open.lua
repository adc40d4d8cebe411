-- Opens every call for one lock, after the clock: the one field that every script looks at.
--
-- KEYS[1]  the lock's key: one hash, and nothing else is touched
-- ARGV[1]  numbers, packed: waiters, sharers, work, retention, longest lease, then the operation's own from byte 29,
--          then what an inbox's channel begins with
-- returns  the error WRONGTYPE for a hash that is not ours
-- cost     1 redis.call (HGET), and EXISTS when there is no record
local key = KEYS[1]
local s = redis.call('HGET', key, 's')
if not s and redis.call('EXISTS', key) == 1 then
  return redis.error_reply('WRONGTYPE the hash at this key is not a lock')
end
