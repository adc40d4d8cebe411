-- Renews many locks at once, each as far as its fast path fits: single calls cost nearly twice as much.
--
-- KEYS     the locks' keys
-- ARGV[1]  as for every script, then the lease
-- ARGV[2]  the holder ids, one behind the other
-- returns  at, then for each lock its stamp or 0, all packed. 0 has changed nothing and is to be renewed by itself
-- cost     TIME, MGET, and 2 redis.calls for each lock (PEXPIREAT, SETRANGE), 3 for another lease than before
local records, stamps = redis.call('MGET', unpack(KEYS)), {}
for at, key in ipairs(KEYS) do
  stamps[at] = records[at] and renew(key, records[at], string.sub(ARGV[2], at * 24 - 23, at * 24)) or 0
end
return struct.pack('>I8' .. string.rep('I8', #stamps), now, unpack(stamps))
