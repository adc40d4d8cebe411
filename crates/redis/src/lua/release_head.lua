-- Release, where the fast path fits (release_fast.lua).
--
-- ARGV[1]  then: whether a not-after is named, the not-after, whether a claim follows, that claim as for acquire
-- ARGV[2]  the holder id to end
-- ARGV[3]  with a claim: its card
-- returns  at: released, nothing left over. Else at, more, what parted (1 hold, 2 place, 0 nothing), then the
--          verdict on the claim if there is one; behind nothing, at the end, the audit if there is one
-- cost     4 redis.calls in all (TIME, MGET, PEXPIREAT, SET); PEXPIREAT comes first so that it works without memory
local retention, longest, named, not_after, again = struct.unpack('>I8I8BI8B', ARGV[1], 13)
if plain then
  local record, ends = release(s, ARGV[2], retention, longest, named, not_after, again)
  if record then
    redis.call('PEXPIREAT', key, string.format('%d', ends))
    redis.call('SET', key, record, 'KEEPTTL')
    return now
  end
end
