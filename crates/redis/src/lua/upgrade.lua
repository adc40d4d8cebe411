-- Upgrade: a shared hold becomes an exclusive one under a fresh id, at once or when the other holders have gone.
--
-- ARGV[1]  limits, then the claim as for acquire
-- ARGV[3]  the new holder id
-- ARGV[4]  inbox, public id, who
-- ARGV[5]  the shared hold's id
-- returns  at, more, then the verdict (see enter.lua)
local c, from = claim(rest, ARGV[3], ARGV[4]), ARGV[5]
grows = true
foresee({'i' .. c.id, 'i' .. from, 'd' .. c.id, 'a' .. inbox(c)})
end_if_over(from)
end_if_over(c.id)
settle()
local function exchange()
  local reader = holder(from)
  if not reader or reader.mode ~= 1 then
    return {4, 6}
  elseif reader.revoked == 1 then
    return {4, 7, get('r' .. from)}
  elseif upgrading == 1 then
    return {4, 8}
  elseif n == 1 then
    end_hold(reader)
    grant(c, c.lease)
    return granted(hold(n))
  elseif c.try == 1 then
    return busy()
  end
  notice = notice or not somebody_waits()
  admit(c)
  enlist(inbox(c), c.alive)
  upgrading = 1
  set('u', from .. form(c))
  return queued(0)
end
return finish(replay(c) or refuse(c) or exchange())
