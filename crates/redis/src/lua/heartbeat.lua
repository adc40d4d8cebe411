-- Heartbeat: keeps a client's waiters on one lock alive and says how they stand.
--
-- ARGV[1]  then for how long the inbox counts as alive
-- ARGV[2]  the inbox
-- ARGV[3…] holder ids
-- returns  at, more, then per id: granted or queued as in enter.lua, or an empty list; behind them the audit if there is
--          one and a list is empty
-- cost     6 redis.calls and one PUBLISH per holding inbox, for one exclusive holder and up to 200 ids
local fields, reply, over = {'a' .. ARGV[2]}, {}, false
for at = 3, #ARGV do
  fields[#fields + 1] = 'i' .. ARGV[at]
end
f.foresee(fields)
-- Before expiry: a heartbeat revives its own waiters as long as they are still there.
local alive
alive, r.rest = read('>I8', ARGV[1], 30)
f.refresh(ARGV[2], alive, 0)
for at = 3, #ARGV do
  f.end_if_over(ARGV[at])
end
f.settle()
r.notice = true
for at = 3, #ARGV do
  local standing = f.standing(ARGV[at])
  over = over or not standing
  reply[#reply + 1] = standing or {}
end
reply = {reply}
return f.finish(over and f.ended(reply) or reply)
