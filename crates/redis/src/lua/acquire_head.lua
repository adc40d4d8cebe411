-- Acquire, where the fast path fits (claim_fast.lua).
--
-- ARGV[1]  then the claim: mode, lease, not-after, ballot, count, capacity, window, live-until, fair, try;
--          with 3 added to the mode, so that no fast path takes it, a claim goes on with the stamp it is to follow
-- ARGV[2]  its card: holder id (16 secret bytes, 8 of sequence), inbox (16 hex digits), public id (8 bytes), who
-- returns  at and stamp, packed: granted for the whole lease, nobody waits. Else at, more, the verdict (see enter.lua)
-- cost     4 redis.calls in all (TIME, MGET, SET, PEXPIREAT), 5 when there is no record (HGET and EXISTS, one SET)
local retention, longest, mode, lease, not_after, ballot = struct.unpack('>I8I8BI8I8I8', ARGV[1], 13)
if plain or not s then
  local record, ends, stamp = claim(s, ARGV[2], retention, longest, mode, lease, not_after, ballot)
  if record then
    if s then
      -- To take an end away and give another costs more than to move it.
      redis.call('SET', key, record, 'KEEPTTL')
      redis.call('PEXPIREAT', key, string.format('%d', ends))
    else
      redis.call('SET', key, record, 'PXAT', string.format('%d', ends))
    end
    return struct.pack('>I8I8', now, stamp)
  end
end
