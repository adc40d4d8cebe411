-- What time and departures bring about: expired holders leave, and the head of the queue becomes the holder.
-- At most `work` entries per call; what is left over is `more`.
local budget, more, notice, news = work, false, false, {}
local over, nth = {}, 1

local function end_hold(h)
  remove(h)
  mark(h.id, h.not_after)
end

-- Ends a named hold that is over, so that no operation finds one alive that the bound left for later.
local function end_if_over(id)
  local h = soonest <= now and holder(id)
  if h and h.till <= now then
    end_hold(h)
  end
end

-- The first of the holds whose end has come. They leave in the order of their ends.
local function expired()
  while over[nth] and not over[nth].slot do
    nth = nth + 1
  end
  if over[nth] or n == 0 or soonest > now then
    return over[nth]
  end
  survey()
  over, nth, soonest = {}, 1, FAR
  for slot = 1, n do
    local h = hold(slot)
    if h.till <= now then
      over[#over + 1] = h
    else
      soonest = math.min(soonest, h.till)
    end
  end
  table.sort(over, function(a, b) return later(b, a) end)
  return over[1]
end

local function admit(c)
  cap, late = c.of, math.max(late, c.not_after)
end

-- Makes a claim a holder with a stamp above all before.
local function grant(c, length)
  last = math.min(math.max(last + 1, us, c.ballot), FAR - 1)
  admit(c)
  insert({id = c.id, till = now + length, revoked = 0, mode = c.mode, count = c.count, stamp = last, since = us,
    not_after = c.not_after, length = length, static = c.static})
end

local function grant_unclaimed(c, at_least)
  grant(c, math.max(math.min(c.window, c.lease), at_least))
  news[#news + 1] = {inbox(c), 'G' .. string.sub(c.id, 17) .. write('>I8', last)}
end

local function settle_upgrade(p)
  local reader = holder(p.from)
  if dead(inbox(p)) or not reader or reader.revoked == 1 then
    return function()
      take_upgrade()
      mark(p.id, p.not_after)
    end
  elseif n == 1 then
    return function()
      take_upgrade()
      local left = remaining(reader)
      end_hold(reader)
      grant_unclaimed(p, left)
    end
  end
end

local function settle_head()
  local at, w = head, waiter(head)
  if dead(inbox(w)) then
    return function()
      leave(at, w)
      mark(w.id, w.not_after)
    end
  elseif fits(w.mode, w.count, w.of) then
    return function()
      leave(at, w)
      grant_unclaimed(w, 0)
    end
  end
end

-- One unit of work that is due.
local function due()
  local h = expired()
  if h then
    return function() end_hold(h) end
  elseif upgrading == 1 then
    return settle_upgrade(upgrade())
  elseif waiting > 0 then
    return settle_head()
  end
end

local function settle()
  local change = due()
  while change do
    if budget == 0 then
      more = true
      return
    end
    budget = budget - 1
    change()
    change = due()
  end
  more = false
end
