-- What claims and upgrades have in common.

-- Reads a claim from its numbers, in the order of acquire_head.lua, and its card.
function f.claim(at, card)
  local c = {card = card, id = string.sub(card, 1, 24), box = string.sub(card, 25, 40)}
  c.mode, c.lease, c.not_after, c.ballot, c.count, c.of, c.window, c.alive, c.fair, c.try, r.rest =
    read('>BI8I8I8I4I4I8I8BB', ARGV[1], at)
  if c.mode > 2 then
    c.mode = c.mode - 3
    c.after, r.rest = read('>I8', ARGV[1], r.rest)
  end
  return c
end

-- The answer to a claim whose id is known or that cannot be served at all.
function f.settled(c)
  local reply, waits = f.standing(c.id)
  if reply then
    if waits then
      f.refresh(c.box, c.alive, 0)
    end
    return reply
  elseif f.contains(c.id) then
    return {4, 1}
  elseif c.not_after < now then
    return {4, 2}
  elseif c.lease > r.longest then
    return {4, 3}
  elseif (r.n > 0 or f.somebody_waits()) and r.cap ~= c.of then
    return {4, 4, r.cap}
  end
  -- A record whose key should have gone vouches for nothing.
  local last = r.known and r.last or 0
  if c.after and c.after ~= last then
    return {4, 9, last}
  end
  -- Nobody escapes a revocation by coming back.
  local list = c.after and f.revocations() or {}
  for at = #list, 1, -1 do
    local stamp, _, _, size, reason = read('>I8I8BI4', list[at])
    if stamp == c.after then
      return {4, 7, string.sub(list[at], reason, reason + size - 1)}
    end
  end
end

function f.busy()
  local reply = {3}
  if not f.blocker(reply) and f.somebody_waits() then
    reply[2], reply[3] = 0, string.sub((f.upgrade() or f.waiter(r.head)).card, 25)
  end
  return reply
end

-- The second value says that the claim is new here.
function f.acquire(c)
  local reply = f.settled(c)
  if reply then
    return reply
  elseif not r.more and not f.somebody_waits() and f.fits(c.mode, c.count, c.of) then
    return f.granted(f.grant(c, c.lease)), true
  elseif c.try == 1 then
    return f.busy()
  elseif r.waiting >= r.room then
    return {4, 5}
  end
  local ahead = r.waiting + r.upgrading
  r.notice = r.notice or ahead == 0 or (c.fair == 1 and r.fairs == 0)
  f.admit(c)
  f.push(c)
  return f.queued(ahead), true
end
