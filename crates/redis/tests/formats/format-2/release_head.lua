-- Release, where the fast path fits.
--
-- returns  at: released, nothing left over. Else at, more, what parted (1 hold, 2 place, 0 nothing), then the
--          verdict on the claim if there is one; behind nothing, at the end, the audit if there is one
-- cost     4 redis.calls in all (TIME, MGET, PEXPIREAT, SET); PEXPIREAT comes first so that it works without memory
if record then
  redis.call('PEXPIREAT', key, string.format('%d', ends))
  redis.call('SET', key, record, 'KEEPTTL')
  return now
end
