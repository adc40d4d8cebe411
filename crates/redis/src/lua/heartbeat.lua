-- Heartbeat: keeps a client's waiters on one lock alive and says how they stand.
--
-- ARGV[1]  limits, then for how long the inbox counts as alive
-- ARGV[3]  the inbox
-- ARGV[4…] holder ids
-- returns  at, more, then per id: granted or queued as in enter.lua, or an empty list
-- cost     at most 9 redis.calls and one PUBLISH per holding inbox, for 200 ids
local fields, reply = {'a' .. ARGV[3]}, {}
for at = 4, #ARGV do
  fields[#fields + 1] = 'i' .. ARGV[at]
end
foresee(fields)
-- Before expiry: a heartbeat revives its own waiters as long as they are still there.
refresh(ARGV[3], read('>I8', ARGV[1], rest))
for at = 4, #ARGV do
  end_if_over(ARGV[at])
end
settle()
notice = true
for at = 4, #ARGV do
  reply[#reply + 1] = standing(ARGV[at]) or {}
end
return finish({reply})
