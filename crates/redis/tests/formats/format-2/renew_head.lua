-- Renew, where the fast path fits.
--
-- ARGV[2]  the holder id
-- returns  at and stamp, packed: renewed for the whole lease, nobody waits. Else at, more, then
--          1 stamp remaining waiters fair (renewed) | 2 reason remaining (revoked) | 0 [audit] (not holder)
-- cost     4 redis.calls in all (TIME, MGET, PEXPIREAT, SETRANGE), 5 for another lease than before
local stamp = plain and renew(key, s, ARGV[2])
if stamp then
  return struct.pack('>I8I8', now, stamp)
end
