-- Renews many locks at once, each as far as its fast path fits: single calls cost nearly twice as much.
--
-- KEYS     the locks' keys
-- ARGV[1]  as for every script, then the lease
-- ARGV[2]  for each its holder id, and when its lease was last started (0: not known)
-- returns  at, then for each lock its stamp or 0, all packed. 0 has changed nothing and is to be renewed by itself
-- cost     TIME, MGET, and for each lock 2 redis.calls at first (PEXPIREAT, SETRANGE), 3 for another lease than before,
--          then 1 each time (PEXPIREAT)
local records, stamps = redis.call('MGET', unpack(KEYS)), {}
for at, key in ipairs(KEYS) do
  local id, started = struct.unpack('>c24I8', ARGV[2], at * 32 - 31)
  stamps[at] = records[at] and renew(key, records[at], id, started) or 0
end
return struct.pack('>I8' .. string.rep('I8', #stamps), now, unpack(stamps))
