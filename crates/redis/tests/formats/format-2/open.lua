-- Opens every call for one lock, after the clock: the numbers that every script looks at.
--
-- A record of numbers alone, which nobody waits for, is a plain string: the numbers that state.lua names. Every other one
-- is a hash, and has them as its field s. Of a string that was renewed among many since it was written (its 37th byte is
-- 3), the key alone knows the end: it lives as long behind the lease's as when it was written.
--
-- KEYS[1]  the lock's key, and nothing else is touched
-- ARGV[1]  numbers, packed: waiters, sharers, work, retention, longest lease, then the operation's own from byte 29,
--          then what an inbox's channel begins with
-- returns  the error WRONGTYPE for a string or a hash that is not ours
-- cost     1 redis.call for a string (MGET, which finds no fault with a hash), 2 for a hash (HGET), 3 for nothing
--          (EXISTS); 2 more than anybody says where the key knows the end (PTTL, TIME)
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
if plain and string.byte(s, 37) == 3 then
  -- The clock is asked behind what is left, so that the lease is told longer rather than shorter.
  local left, asked = redis.call('PTTL', key), redis.call('TIME')
  local last, _, expires, late, n, _, till = struct.unpack('>I8I8I8I8I4BI8', s)
  local behind, length = expires - till, struct.unpack('>I8', s, 76)
  local ends = now + length
  -- Somebody may have taken the key's end away, or have set it too late.
  if left ~= -1 then
    ends = math.min(ends, asked[1] * 1000 + math.floor(asked[2] / 1000) + left - behind)
  end
  s = struct.pack('>I8I8I8I8I4BI8', last, now, ends + behind, late, n, 0, ends) .. string.sub(s, 46)
end
