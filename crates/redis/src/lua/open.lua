-- Opens every call for one lock, after the clock: the numbers that every script looks at.
--
-- A record of numbers alone, which nobody waits for, is a plain string: the numbers that state.lua names. Every other one
-- is a hash, and has them as its field s.
--
-- KEYS[1]  the lock's key, and nothing else is touched
-- ARGV[1]  numbers, packed: waiters, sharers, work, retention, longest lease, then the operation's own from byte 29,
--          then what an inbox's channel begins with
-- returns  the error WRONGTYPE for a string or a hash that is not ours
-- cost     1 redis.call for a string (MGET, which finds no fault with a hash), 2 for a hash (HGET), 3 for nothing
--          (EXISTS)
local key = KEYS[1]
local s = redis.call('MGET', key)[1]
local plain = s
if not s then
  s = redis.call('HGET', key, 's')
end
-- A stamp takes seven bytes of its eight.
if plain and (#s < 37 or string.byte(s) ~= 0) or not s and redis.call('EXISTS', key) == 1 then
  return redis.error_reply('WRONGTYPE what stands at this key is not a lock')
end
