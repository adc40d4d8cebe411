-- Renews many locks at once, each as far as its fast path fits: single calls cost nearly twice as much.
--
-- KEYS     the locks' keys
-- ARGV[1]  as for every script, then the lease
-- ARGV[2]  the holder ids, one behind the other
-- returns  at, then for each lock its stamp or 0, all packed. 0 has changed nothing and is to be renewed by itself
-- cost     TIME, and 3 redis.calls for each lock (HGET, PEXPIREAT, HSET)
local stamps = {struct.pack('>I8', now)}
for at, key in ipairs(KEYS) do
  -- Where something else is at the key, the others are renewed all the same.
  local s = redis.pcall('HGET', key, 's')
  local stamp = type(s) == 'string' and renew(key, s, string.sub(ARGV[2], at * 24 - 23, at * 24))
  stamps[at + 1] = struct.pack('>I8', stamp or 0)
end
return table.concat(stamps)
