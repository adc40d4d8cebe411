-- Upgrade: a shared hold becomes an exclusive one under a fresh id, at once or when the other holders have gone.
--
-- ARGV[1]  then the claim as for acquire
-- ARGV[2]  its card
-- ARGV[3]  the shared hold's id
-- returns  at, more, then the verdict (see enter.lua)
local c, from = f.claim(30, ARGV[2]), ARGV[3]
f.foresee({'i' .. c.id, 'i' .. from, 'd' .. c.id, 'a' .. c.box})
f.end_if_over(from)
f.end_if_over(c.id)
f.settle()
function f.exchange()
  local reader = f.holder(from)
  if not reader then
    return f.ended({4, 6})
  elseif reader.mode ~= 1 then
    return {4, 6}
  elseif reader.revoked == 1 then
    return {4, 7, f.get('r' .. from)}
  elseif r.upgrading == 0 and r.n == 1 then
    f.end_hold(reader)
    return f.granted(f.grant(c, c.lease))
  elseif r.upgrading == 1 or c.try == 1 then
    -- The reader goes on: a late copy must not find it alone, and take its hold from under it.
    f.mark(c.id, c.not_after)
    return r.upgrading == 1 and {4, 8} or f.busy()
  end
  r.notice = r.notice or not f.somebody_waits()
  f.admit(c)
  f.refresh(c.box, c.alive, 1)
  r.upgrading = 1
  f.set('u', from .. f.form(c))
  return f.queued(0)
end
return f.finish(f.settled(c) or f.exchange())
