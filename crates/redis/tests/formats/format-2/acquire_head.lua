-- Acquire, where the fast path fits.
--
-- returns  at and stamp, packed: granted for the whole lease, nobody waits. Else at, more, the verdict (see enter.lua)
-- cost     4 redis.calls in all (TIME, MGET, SET, PEXPIREAT), 5 when there is no record (HGET and EXISTS, one SET)
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
