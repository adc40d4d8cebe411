-- How claims enter, and the words of a verdict:
--   1 stamp remaining waiters fair   granted
--   2 last ahead [remaining static]  queued, with the holder that ends last
--   3 [remaining static]             busy, with the holder or the next in line
--   4 code …                         refused: 1 done, 2 late, 3 lease too long, 4 wrong kind (capacity there is),
--                                    5 queue full, 6 not holder, 7 revoked (reason), 8 upgrade pending
local function line(reply)
  reply[#reply + 1] = waiting + upgrading
  reply[#reply + 1] = fairs > 0 and 1 or 0
  return reply
end

local function granted(h)
  return line({1, h.stamp, remaining(h)})
end

local function queued(ahead)
  local reply = {2, last, ahead}
  blocker(reply)
  return reply
end

local function ahead_of(at)
  return math.min(at - head, waiting - 1) + upgrading
end

-- How an id that holds or waits stands, or nothing; the second value says that it waits.
local function standing(id)
  local kind, at = find(id)
  if kind == 1 then
    return granted(hold(at))
  elseif upgrading == 1 and upgrade().id == id then
    return queued(0), true
  elseif kind == 2 then
    return queued(ahead_of(at)), true
  end
end

local function replay(c)
  local reply, waits = standing(c.id)
  if waits then
    refresh(inbox(c), c.alive)
  end
  return reply
end

local function refuse(c)
  if contains(c.id) then
    return {4, 1}
  elseif c.not_after < now then
    return {4, 2}
  elseif c.lease > longest then
    return {4, 3}
  elseif (n > 0 or somebody_waits()) and cap ~= c.of then
    return {4, 4, cap}
  end
end

local function busy()
  local reply = {3}
  if not blocker(reply) and somebody_waits() then
    reply[2], reply[3] = 0, (upgrade() or waiter(head)).static
  end
  return reply
end

local function acquire(c)
  local reply = replay(c) or refuse(c)
  if reply then
    return reply
  elseif not more and not somebody_waits() and fits(c.mode, c.count, c.of) then
    grant(c, c.lease)
    return granted(hold(n))
  elseif c.try == 1 then
    return busy()
  elseif waiting >= room then
    return {4, 5}
  end
  local ahead = waiting + upgrading
  notice = notice or not somebody_waits() or (c.fair == 1 and fairs == 0)
  admit(c)
  push(c)
  return queued(ahead)
end
