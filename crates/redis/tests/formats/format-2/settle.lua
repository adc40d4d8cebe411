-- What time and departures bring about: expired holders leave, and the head of the queue becomes the holder.
-- At most `work` entries per call; what is left over is `more`.
r.budget, r.more, r.notice, r.over, r.nth = r.work, false, false, {}, 1
local news = {}

function f.end_hold(h)
  f.remove(h)
  f.mark(h.id, h.not_after)
end

-- Ends a named hold that is over, so that no operation finds one alive that the bound left for later.
function f.end_if_over(id)
  local h = r.soonest <= now and f.holder(id)
  if h and h.till <= now then
    f.end_hold(h)
  end
end

-- The first of the holds whose end has come. They leave in the order of their ends.
function f.expired()
  while r.over[r.nth] and not r.over[r.nth].slot do
    r.nth = r.nth + 1
  end
  if r.over[r.nth] or r.n == 0 or r.soonest > now then
    return r.over[r.nth]
  end
  f.survey()
  r.over, r.nth, r.soonest = {}, 1, FAR
  for slot = 1, r.n do
    local h = f.hold(slot)
    if h.till <= now then
      r.over[#r.over + 1] = h
    else
      r.soonest = math.min(r.soonest, h.till)
    end
  end
  table.sort(r.over, function(a, b) return f.later(b, a) end)
  return r.over[1]
end

-- Takes note of a claim that enters.
function f.admit(c)
  r.cap, r.late = c.of, math.max(r.late, c.not_after)
end

-- Makes a claim a holder with a stamp above all before.
function f.grant(c, length)
  r.last = math.min(math.max(r.last + 1, us, c.ballot), FAR - 1)
  f.admit(c)
  local h = {id = c.id, till = now + length, revoked = 0, mode = c.mode, count = c.count, stamp = r.last, since = us,
    not_after = c.not_after, length = length, card = c.card}
  f.insert(h)
  return h
end

function f.grant_unclaimed(c, at_least)
  f.grant(c, math.max(math.min(c.window, c.lease), at_least))
  news[#news + 1] = c.box
  news[#news + 1] = 'G' .. string.sub(c.id, 17) .. write('>I8I4B', r.last, r.waiting, r.fairs > 0 and 1 or 0)
end

-- Whether the pending upgrade can be exchanged or must go; does it if there is budget.
function f.settle_upgrade()
  local p = f.upgrade()
  local reader = f.holder(p.from)
  local lapsed = f.dead(p.box) or not reader or reader.revoked == 1
  if not lapsed and r.n > 1 then
    return false
  elseif r.budget > 0 then
    f.take_upgrade()
    if lapsed then
      f.mark(p.id, p.not_after)
    else
      local left = f.remaining(reader)
      f.end_hold(reader)
      f.grant_unclaimed(p, left)
    end
  end
  return true
end

-- The same for the head of the queue.
function f.settle_head()
  local at, w = r.head, f.waiter(r.head)
  local lapsed = f.dead(w.box)
  if not lapsed and not f.fits(w.mode, w.count, w.of) then
    return false
  elseif r.budget > 0 then
    f.leave(at, w)
    if lapsed then
      f.mark(w.id, w.not_after)
    else
      f.grant_unclaimed(w, 0)
    end
  end
  return true
end

-- Does one unit of work that is due, if there is budget; false when nothing is due.
function f.advance()
  local h = f.expired()
  if h then
    if r.budget > 0 then
      f.end_hold(h)
    end
    return true
  elseif r.upgrading == 1 then
    return f.settle_upgrade()
  end
  return r.waiting > 0 and f.settle_head()
end

function f.settle()
  while f.advance() do
    if r.budget == 0 then
      r.more = true
      return
    end
    r.budget = r.budget - 1
  end
  r.more = false
end
